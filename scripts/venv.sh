#!/bin/sh
# Makes .venv, or the folder VENV, hold exactly the pinned packages of the given lock files: `scripts/venv.sh LOCK...`.
# A lock file already installed is not looked at again until it changes.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
if ! [ -x "$venv/bin/pip" ]; then # it comes last: without it, the making of the folder was stopped
  python3 -c 'import ensurepip, venv' 2>/dev/null || scripts/need.sh python3-venv
  echo "creating $venv with $(python3 --version)"
  python3 -m venv --clear "$venv"
fi
for lock in "$@"; do
  stamp=$venv/$(basename "$lock").installed
  if ! cmp -s "$lock" "$stamp"; then
    echo "installing the pinned packages of $lock"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$lock"
    cp "$lock" "$stamp"
  fi
done
