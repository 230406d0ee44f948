#!/bin/sh
# Installs torch with all that it needs: `sh torch.sh REQUIREMENTS`, which are lines of a file of requirements; torch alone if
# `--no-deps` follows. Where they have hashes, a package without one is refused.
set -eu
wanted=$1
shift
printf '%s\n' "$wanted" >/tmp/torch.txt
case $wanted in *--hash=*) set -- "$@" --require-hashes ;; esac
sh /tmp/install.sh "$@" -r /tmp/torch.txt
case " $* " in *" --no-deps "*) ;; *) python -c 'import torch' ;; esac
