#!/bin/sh
# Installs like `pip install`, but with uv, which unpacks with all processors: `sh install.sh [OPTION...]
# REQUIREMENT...`. If uv fails, as with pip settings that it does not understand, pip installs everything.
set -eu
pip install --quiet --no-deps --require-hashes --target /opt/uv -r /tmp/uv.lock
if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi
if [ -n "${PIP_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="$PIP_INDEX_URL"; fi
# Without a cache, files are unpacked right where they stay: torch has 7 GB, and the disk limits how fast an image is
# made.
export UV_NO_CACHE=1 UV_HTTP_TIMEOUT=180
/opt/uv/bin/uv pip install --python "$(command -v python)" "$@" || pip install --ignore-installed "$@"
rm -r /opt/uv
