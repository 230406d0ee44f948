#!/bin/sh
# `pip install` with uv, which takes a fifth of pip's time for torch: `sh install.sh [OPTION...] REQUIREMENT...`.
# Where the host's settings for pip say more than uv understands, pip does it.
set -eu
pip install --quiet --no-deps --require-hashes --target /opt/uv -r /tmp/uv.lock
if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi
if [ -n "${PIP_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="$PIP_INDEX_URL"; fi
export UV_CACHE_DIR=/var/cache/uv UV_LINK_MODE=copy
/opt/uv/bin/uv pip install --python "$(command -v python)" "$@" || pip install "$@"
rm -r /opt/uv
