#!/bin/sh
# Installs a Python in an image of a Debian suite: `sh python.sh 3.13`, or `sh python.sh 3.13t` for one without a GIL.
# Followed by the word `headers`, it installs the headers for compiling extensions of that Python. Debian has no Python
# without a GIL, so that is compiled from the suite's own source package, which apt verifies like any package. Compiling
# takes as little time as possible: tests need no faster Python.
set -eu
version=$1
plain=${version%t}
fetch() { DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@"; }
if [ "${2:-}" = headers ]; then
  apt-get -q update
  fetch "libpython$plain-dev"
elif [ "$version" = "$plain" ]; then
  apt-get -q update
  fetch "python$version-venv"
else
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/sources.list
  apt-get -q update
  kept=$(apt-mark showmanual)
  fetch gcc libc6-dev make xz-utils zlib1g-dev libssl-dev libffi-dev libsqlite3-dev libbz2-dev liblzma-dev
  mkdir /tmp/python
  cd /tmp/python
  apt-get -q source --download-only --tar-only "python$plain"
  tar --strip-components=1 -xf ./*.orig.tar.*
  ./configure --quiet --disable-gil --disable-test-modules OPT="-DNDEBUG -fwrapv -O1"
  make --silent --jobs="$(nproc)" altinstall
  cd /
  rm -r /tmp/python /etc/apt/sources.list.d/sources.list
  # The compiler goes; the libraries that this Python loads stay.
  needed=$(find /usr/local -name '*.so' -exec ldd {} + | awk '/=> \//{print $3}' | xargs -n1 realpath | sort -u |
    xargs -n1 dpkg-query --search 2>/dev/null | cut -d: -f1 | sort -u)
  apt-mark auto '.*' >/dev/null
  # shellcheck disable=SC2086 # lists of names
  apt-mark manual $kept $needed >/dev/null
  apt-get -qy purge --auto-remove
fi
apt-get clean
rm -rf /var/lib/apt/lists/*
