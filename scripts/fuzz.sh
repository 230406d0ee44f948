#!/bin/sh
# Runs wheelscope's fuzz targets: `scripts/fuzz.sh BUILD_FOLDER SECONDS`. Seeds are the fixtures and what earlier runs found
# (tests/wheelscope/fuzz/found/TARGET); a new crash is kept there, to be fixed and committed.
set -eu
build=$1 seconds=$2
for target in zip elf fatbin wheel; do
  found=tests/wheelscope/fuzz/found/$target
  corpus=$build/corpus/$target
  mkdir -p "$found" "$corpus"
  echo "fuzz_$target: $seconds s"
  "$build/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$found/" "$corpus" "$found" "$build/fixtures/$target" >"$build/fuzz_$target.log" 2>&1 || {
    tail -n 40 "$build/fuzz_$target.log" >&2
    echo "error: fuzz_$target found something: the input is in $found, the whole log is $build/fuzz_$target.log" >&2
    exit 1
  }
  grep -E 'number_of_executed_units|peak_rss_mb' "$build/fuzz_$target.log"
done
