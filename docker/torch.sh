#!/bin/sh
# Installs torch with all that it needs: `sh torch.sh 'torch==2.10.0 --hash=sha256:...'`, or without hashes.
# uv compares the hashes that it is given. pip wants those of all packages or of none, so there torch comes first, alone.
set -eu
echo "$1" >/tmp/torch.txt
sh /tmp/install.sh -r /tmp/torch.txt || { pip install --no-deps -r /tmp/torch.txt && pip install "${1%% *}"; }
