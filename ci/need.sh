#!/bin/sh
# Makes sure that Debian packages are installed: `ci/need.sh PACKAGE...`.
# Installs what is missing as root (or through sudo without a password); otherwise says what to type.
set -eu
missing=
for package in "$@"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ]; then sudo=; elif sudo -n true 2>/dev/null; then sudo=sudo; else
  echo "error: these packages are missing; install them with: sudo apt-get install$missing" >&2
  exit 1
fi
echo "installing Debian packages:$missing"
log=$(mktemp)
install='apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"'
# One at a time, wheelyard's own installing included (core/debian.py): apt waits for another apt in part only.
# shellcheck disable=SC2086 # both are lists of words
if ! $sudo flock /run/ci-debian.turn sh -c "$install" sh $missing >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "error: apt-get could not install:$missing (whole log: $log)" >&2
  exit 1
fi
rm -f "$log"
