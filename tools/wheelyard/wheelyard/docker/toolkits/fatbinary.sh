#!/bin/bash
# Lets clang use CUDA 13's fatbinary: translates its arguments, and adds native code for GPUs that clang does not know.
#
# clang says     --image=profile=sm_80,file=F        --image=profile=compute_80,file=F
# CUDA 13 wants  --image3=kind=elf,sm=80,file=F      --image3=kind=ptx,sm=80,file=F, which newer clangs say too
# --assemble=sm_100 is ours (clang passes it on from -Xcuda-fatbinary): ptxas compiles the newest PTX for that target.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
arguments=()
extra_targets=()
ptx=
ptx_target=0
for argument in "$@"; do
  if [[ $argument =~ ^--image=profile=(sm|compute)_([0-9]+)([af]?),file=(.*)$ ||
    $argument =~ ^--image3=kind=(elf|ptx),sm=([0-9]+)([af]?),file=(.*)$ ]]; then
    kind=${BASH_REMATCH[1]} target=${BASH_REMATCH[2]} suffix=${BASH_REMATCH[3]} file=${BASH_REMATCH[4]}
    if [[ $kind = compute || $kind = ptx ]]; then
      arguments+=("--image3=kind=ptx,sm=$target$suffix,file=$file")
      if ((target > ptx_target)); then ptx=$file ptx_target=$target; fi
    else
      arguments+=("--image3=kind=elf,sm=$target$suffix,file=$file")
    fi
  elif [[ $argument = --assemble=sm_* ]]; then
    extra_targets+=("${argument#--assemble=sm_}")
  else
    arguments+=("$argument")
  fi
done
if ((${#extra_targets[@]})); then
  [[ -n $ptx ]] || { echo "fatbinary: --assemble needs PTX; add +PTX to one of the GPU targets" >&2; exit 1; }
  cubins=$(mktemp -d)
  trap 'rm -rf "$cubins"' EXIT
  for target in "${extra_targets[@]}"; do
    "$here/ptxas" -m64 -O3 "--gpu-name=sm_$target" --output-file "$cubins/$target.cubin" "$ptx"
    arguments+=("--image3=kind=elf,sm=$target,file=$cubins/$target.cubin")
  done
fi
"$here/fatbinary-13" --compress-all --compress-mode=size "${arguments[@]}"
