#!/bin/sh
# Makes sure that Debian packages are installed: `tools/setup/need.sh PACKAGE...`. A package named like its program counts as
# installed if the program is on PATH, wherever it came from. Installs missing packages as root (or through sudo without a
# password) and says so; otherwise, or with INSTALL=no, says what to type and stops.
set -eu
missing=
for package in "$@"; do
  command -v "$package" >/dev/null 2>&1 && continue
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "error: these are missing, and there is no apt-get to install them; their names on Debian are:$missing" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then sudo=; elif sudo -n true 2>/dev/null; then sudo=sudo; else INSTALL=no; fi
if [ "${INSTALL:-}" = no ]; then
  echo "error: these packages are missing; install them with: sudo apt-get install$missing" >&2
  exit 1
fi
echo "installing Debian packages:$missing"
log=$(mktemp)
install='apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"'
# Locks out other installers, wheelyard's included (core/debian.py): apt itself waits only partly for another apt.
# shellcheck disable=SC2086 # both are lists of words
if ! $sudo flock /run/ci-debian.turn sh -c "$install" sh $missing >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "error: apt-get could not install:$missing (whole log: $log)" >&2
  exit 1
fi
rm -f "$log"
