#!/bin/sh
# Installs torch: `sh torch.sh 'torch==2.10.0 --hash=sha256:...'`, or without hashes; with all that it needs, unless
# `--no-deps` follows. uv compares the hashes that it is given. pip wants those of all packages or of none, so there
# torch comes first, alone.
set -eu
wanted=$1
shift
echo "$wanted" >/tmp/torch.txt
if ! sh /tmp/install.sh "$@" -r /tmp/torch.txt; then
  pip install --no-deps -r /tmp/torch.txt
  pip install "$@" "${wanted%% *}"
fi
if [ $# -eq 0 ]; then python -c 'import torch'; fi
