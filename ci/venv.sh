#!/bin/sh
# Makes .venv, or the folder VENV, hold the pinned packages of the given lock files: `ci/venv.sh LOCK...`.
# A lock file already installed is not looked at again until it changes.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
if ! [ -x "$venv/bin/pip" ]; then # it comes last: without it, the making of the folder was stopped
  python3 -c 'import ensurepip, venv' 2>/dev/null || ci/need.sh python3-venv
  echo "creating $venv with $(python3 --version)"
  python3 -m venv --clear "$venv"
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
