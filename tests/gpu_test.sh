#!/bin/bash
# What a machine with a GPU says of a wheel: tests/gpu_test.sh WHEEL [smoke|tests|jit|bench|sanitize ...]
# All five by default; results go into build/gpu-test, or into OUT. PYTHON (python3) has torch; tests and sanitize need
# pytest and hypothesis too; jit a CUDA toolkit and Ninja; sanitize CMake and compute-sanitizer too, and TOOLS may name some
# of its four. Nothing is installed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "${1:?usage: tests/gpu_test.sh WHEEL [smoke|tests|jit|bench|sanitize ...]}")
shift
out=$(realpath -m "${OUT:-$here/build/gpu-test}")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# The wheel apart from this tree, and no bytecode beside the tests.
"$python" -m pip install --quiet --no-deps --no-index --target "$work/site" "$wheel"
export PYTHONPATH=$work/site${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
cp -r "$here/tests/package" "$work/package"
run_tests() { (cd "$work/package" && "$@"); }
pytest=("$python" -m pytest -q -p no:cacheprovider)

# logged NAME COMMAND...: what it prints goes to a file, its summary here; fails as the command does.
logged() {
  local log=$out/$1.txt name=$1 status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  echo "$name: $(grep -E '^[0-9]+ (passed|failed)|SUMMARY|checks' "$log" | tr '\n' ' ')"
  [ $status = 0 ] || { tail -n 30 "$log" && exit $status; }
}

smoke() {
  # Not in the clone, where `python -m` would take its sources.
  (cd "$work" && "$python" "$here/tools/wheelyard/wheelyard/programs/smoke.py" "$wheel" \
    --spec-command "python -m cuda_ext_example --smoke-spec" --evidence "$out/evidence.json")
}

tests() { logged tests run_tests "${pytest[@]}" .; }

jit() { logged jit "${pytest[@]}" "$here/tests/examples"; }

bench() {
  (cd "$work" && "$python" -m cuda_ext_example) | tee "$out/doctor.txt"
  export PYTHONPATH=$PYTHONPATH:$here/tools/opwright
  "$python" -m opwright bench cuda_ext_example --check --output "$out/check"
  "$python" -m opwright bench cuda_ext_example --output "$out/bench"
  "$python" -m opwright bench cuda_ext_example --layouts --check --output "$out/bench"
}

# until_it_ends COMMAND...: again, up to five times, where `timeout` killed it.
until_it_ends() {
  local status
  for _ in 1 2 3 4 5; do
    status=0
    "$@" || status=$?
    [ $status = 137 ] || break
  done
  return $status
}

# compute-sanitizer on the standalone program, then on the GPU's tests. The tests with many threads run apart, as racecheck
# sometimes hangs where threads launch on streams of their own, with torch.add alone in one run of seven. Left out: torch.compile,
# whose kernels are not ours, and sizes beyond 2^31.
sanitize() {
  capability=$("$python" -c 'import torch; print(*torch.cuda.get_device_capability(), sep=".")')
  (cd "$here" && OPWRIGHT_CUDA=on TORCH_CUDA_ARCH_LIST=$capability "$python" setup.py --quiet build_cpp >/dev/null)
  for tool in ${TOOLS:-memcheck racecheck initcheck synccheck}; do
    sanitizer=(compute-sanitizer --tool "$tool" --error-exitcode 9)
    logged "$tool-standalone" "${sanitizer[@]}" "$here"/build/extension-*/bin/standalone --check
    logged "$tool-tests" run_tests "${sanitizer[@]}" "${pytest[@]}" test_ops.py \
      -k "cuda and not inductor and not compile and not opcheck and not 32_bits and not many_threads"
    for op in $("$python" -c "from cuda_ext_example._ops import OPS; print(*(op.name for op in OPS))"); do
      logged "$tool-threads-$op" until_it_ends run_tests timeout --signal=KILL 40 "${sanitizer[@]}" "${pytest[@]}" \
        test_ops.py -k "many_threads and $op-"
    done
  done
}

[ $# -gt 0 ] || set -- smoke tests jit bench sanitize
for step in "$@"; do echo "== $step" && "$step"; done
