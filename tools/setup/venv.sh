#!/bin/sh
# Makes .venv, or the folder VENV, hold the pinned packages of the given lock files: `tools/setup/venv.sh LOCK...`.
# A lock file already installed is not looked at again until it changes.
set -eu
cd "$(dirname "$0")/../.."
venv=${VENV:-.venv}
oldest=3.11 # Python that the locks are for

# The first Python on PATH that is not too old, python3 before those with a version in their name; else Debian's or Ubuntu's.
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

if ! [ -x "$venv/bin/pip" ]; then # it comes last: without it, the making of the folder was stopped
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

# uv, if a lock pins it: it is quicker than pip with the rest.
install_uv() {
  pin=$(mktemp)
  sed -n '/^uv==/,/[^\\]$/p' "$1" >"$pin"
  if [ -s "$pin" ]; then pip install --no-deps --require-hashes -r "$pin"; fi
  rm "$pin"
}

# What pip is told, without --quiet, which would leave nothing of it; the environment's word counts most.
setting() {
  told=$("$venv/bin/python" -m pip --disable-pip-version-check config list)
  { echo "$told" | sed '/^:env:/d'; echo "$told" | sed -n '/^:env:/p'; } |
    sed -n "s/^[^=]*\.$1='\(.*\)'$/\1/p" | tail -n 1
}

# uv is told what pip's settings say of the index; where they say more that matters, it fails and pip is asked.
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
    { [ -x "$venv/bin/uv" ] && with_uv "$lock"; } || pip install --ignore-installed --no-deps --require-hashes -r "$lock"
    cp "$lock" "$stamp"
  fi
done
