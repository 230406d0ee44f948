#!/bin/sh
# Runs wheelscope's fuzz targets: `scripts/fuzz.sh BUILD_FOLDER SECONDS`. Seeds are the fixtures, the texts in
# tests/wheelscope/fuzz/seeds and what earlier runs found (tests/wheelscope/fuzz/found); a new crash is kept there, to be
# fixed and committed.
#
# Memory is limited as a user's is: inputs of up to 64 KiB justify 256 MiB, so that no single allocation may be larger.
# The whole process may have as much again for the sanitizers, which keep freed memory for a while.
set -eu
build=$1 seconds=$2
here=tests/wheelscope/fuzz
export ASAN_OPTIONS=quarantine_size_mb=32
for source in "$here"/*_fuzz.cc; do
  target=$(basename "$source" _fuzz.cc)
  found=$here/found/$target
  corpus=$build/corpus/$target
  mkdir -p "$found" "$corpus"
  set -- "$corpus" "$found"
  for seeds in "$build/fixtures/$target" "$here/seeds/$target"; do
    if [ -d "$seeds" ]; then set -- "$@" "$seeds"; fi
  done
  echo "fuzz_$target: $seconds s"
  "$build/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -malloc_limit_mb=256 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="$found/" "$@" >"$build/fuzz_$target.log" 2>&1 || {
    tail -n 40 "$build/fuzz_$target.log" >&2
    echo "error: fuzz_$target found something: the input is in $found, the whole log is $build/fuzz_$target.log" >&2
    exit 1
  }
  grep -E 'number_of_executed_units|peak_rss_mb' "$build/fuzz_$target.log"
done
