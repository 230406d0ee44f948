#!/bin/sh
# Runs wheelscope's fuzz targets, one on each core at a time: `validation/fuzz.sh BUILD_FOLDER SECONDS [TARGET]`. Seeds are
# the fixtures and what earlier runs found (tests/fuzz/found); a new crash is kept there, to be fixed and committed.
#
# Memory is limited as a user's is: inputs of up to 64 KiB justify 256 MiB, so that no single allocation may be larger.
# The whole process may have as much again for the sanitizers, which keep freed memory for a while.
set -eu
build=$1 seconds=$2 target=${3:-}
here=tests/fuzz
if [ -z "$target" ]; then
  sed -n 's/^void fuzz_\([a-z_]*\)(.*/\1/p' "$here/fuzzers.cc" |
    xargs -n 1 -P "$(nproc)" "$0" "$build" "$seconds"
  exit
fi
export ASAN_OPTIONS=quarantine_size_mb=32
found=$here/found/$target
corpus=$build/corpus/$target
log=$build/fuzz_$target.log
mkdir -p "$found" "$corpus"
set -- "$corpus" "$found"
case $target in
archive) kinds=elf ;;
thin) kinds='elf fatbin wheel' ;;
*) kinds=$target ;;
esac
for kind in $kinds; do
  set -- "$@" "$build/fixtures/$kind"
done
FUZZ_TARGET=$target "$build/fuzzers" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -malloc_limit_mb=256 -max_len=65536 \
  -print_final_stats=1 -artifact_prefix="$found/" "$@" >"$log" 2>&1 || {
  tail -n 40 "$log" >&2
  echo "error: $target: the fuzzer found something: the input is in $found, the whole log is $log" >&2
  exit 1
}
echo "fuzz_$target: $seconds s, $(sed -n 's/stat::\(number_of_executed_units\|peak_rss_mb\): */\1 /p' "$log" | paste -sd, | sed 's/,/, /')"
