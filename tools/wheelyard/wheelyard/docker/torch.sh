#!/bin/sh
# Installs torch with its dependencies: `sh torch.sh REQUIREMENTS`, with the lines of a requirements file; torch alone
# if `--no-deps` follows. If the lines have hashes, a package without one is refused.
set -eu
wanted=$1
shift
printf '%s\n' "$wanted" >/tmp/torch.txt
case $wanted in *--hash=*) set -- "$@" --require-hashes ;; esac
sh /tmp/install.sh "$@" -r /tmp/torch.txt
case " $* " in *" --no-deps "*) ;; *) python -c 'import torch' ;; esac
