#!/bin/sh
# Makes .venv, or the folder VENV, hold the pinned packages of the given lock files: `tools/setup/venv.sh LOCK...`. A
# lock file that is already installed is skipped until it changes.
set -eu
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
oldest=3.11 # the Python that the locks are for

# Finds the first Python on PATH that is not too old, trying python3 before names with a version; otherwise installs Debian's or
# Ubuntu's.
find_python() {
  command -v python3 >/dev/null || tools/setup/need.sh python3 python3-venv
  for python in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do
    if "$python" -c "import sys; sys.exit(sys.version_info < (${oldest%.*}, ${oldest#*.}))" 2>/dev/null; then return; fi
  done
  python=python$oldest
  tools/setup/need.sh $python $python-venv || {
    echo "error: Python $oldest or later is needed, and this is $(python3 --version 2>&1): put one on PATH, such as the one that" \
      "\`uv python install\` brings, and run this again" >&2
    exit 1
  }
}

# pip is made last: without it, the folder is incomplete. Programs have the folder's path in them, and do not start after a move.
case $venv in /*) place=$venv ;; *) place=$(pwd -P)/$venv ;; esac
if ! [ -x "$venv/bin/pip" ] || ! grep -qsF " $place" "$venv/pyvenv.cfg"; then
  find_python
  "$python" -c 'import ensurepip, venv' 2>/dev/null || tools/setup/need.sh "$python-venv"
  echo "creating $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
  # Python 3.11 brings setuptools, and --ignore-installed below would leave it beside the pinned one.
  "$venv/bin/python" -m pip --quiet --disable-pip-version-check uninstall --yes setuptools 2>/dev/null
fi

pip() {
  "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"
}

# Installs uv, if the lock pins it: it installs the rest faster than pip.
install_uv() {
  pin=$(mktemp)
  sed -n '/^uv==/,/[^\\]$/p' "$1" >"$pin"
  if [ -s "$pin" ]; then pip install --no-deps --require-hashes -r "$pin"; fi
  rm "$pin"
}

# Prints one of pip's settings; --quiet would suppress it. Settings from the environment win.
setting() {
  told=$("$venv/bin/python" -m pip --disable-pip-version-check config list)
  { echo "$told" | sed '/^:env:/d'; echo "$told" | sed -n '/^:env:/p'; } |
    sed -n "s/^[^=]*\.$1='\(.*\)'$/\1/p" | tail -n 1
}

# Installs with uv, using pip's settings of the index. If other settings matter, uv fails and pip installs instead.
with_uv() (
  index=$(setting index-url) certificates=$(setting cert)
  if [ -n "$index" ]; then export UV_DEFAULT_INDEX="$index"; fi
  if [ -n "$certificates" ]; then export SSL_CERT_FILE="$certificates"; fi
  "$venv/bin/uv" --quiet pip install --python "$venv/bin/python" --no-deps --require-hashes -r "$1"
)

for lock in "$@"; do
  stamp=$venv/$(basename "$lock").installed
  if ! cmp -s "$lock" "$stamp"; then
    echo "installing the pinned packages of $lock"
    [ -x "$venv/bin/uv" ] || install_uv "$lock"
    if ! [ -x "$venv/bin/uv" ] || { ! with_uv "$lock" && echo "uv could not; pip installs them, which takes longer"; }; then
      pip install --ignore-installed --no-deps --require-hashes -r "$lock"
    fi
    cp "$lock" "$stamp"
  fi
done
