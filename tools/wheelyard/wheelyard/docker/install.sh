#!/bin/sh
# `pip install` with uv, which unpacks with all processors: `sh install.sh [OPTION...] REQUIREMENT...`.
# Where the host's settings for pip say more than uv understands, pip does all of it.
set -eu
pip install --quiet --no-deps --require-hashes --target /opt/uv -r /tmp/uv.lock
if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi
if [ -n "${PIP_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="$PIP_INDEX_URL"; fi
# Without a cache, files are unpacked where they stay: torch brings 7 GB, and the disk is what an image waits for.
export UV_NO_CACHE=1 UV_HTTP_TIMEOUT=180
/opt/uv/bin/uv pip install --python "$(command -v python)" "$@" || pip install --ignore-installed "$@"
rm -r /opt/uv
