#!/bin/sh
# Everything that needs a GPU, in one call of 9 minutes: builds the library for the card that is
# there, checks all kernels and the live device, calibrates quickly, and makes live runs of each
# kind. A step that fails or runs out of its time does not keep the next from running.
#
#   sh cuda/check.sh [OUTPUT_FOLDER] [SECONDS]      default ./out/check, 540 seconds
#
# Where Go is missing, the programs in cuda/build, or packed in cuda/build/programs.tar.xz (make
# gpu-pack), are used. The exit status is 0 if all went well.
set -u
cd "$(dirname "$0")/.."
out=${1:-out/check}
budget=${2:-540}
mkdir -p "$out"
begin=$(date +%s)
failed=

# step NAME SECONDS COMMAND..: runs for at most the given seconds and what is left of the budget;
# all that it prints goes to NAME.log.
step() {
  name=$1 most=$2
  shift 2
  rest=$((begin + budget - $(date +%s)))
  [ "$rest" -lt "$most" ] && most=$rest
  from=$(date +%s)
  status="no time left"
  if [ "$most" -ge 5 ]; then
    timeout -s INT -k 10 "$most" "$@" >"$out/$name.log" 2>&1
    code=$?
    status="exit status $code"
    [ $code -ne 0 ] || status=ok
    [ $code -ne 124 ] || status="out of time"
  fi
  echo "$name: $status, $(($(date +%s) - from)) s" | tee -a "$out/steps.txt"
  [ "$status" != ok ] || return 0
  failed="$failed $name"
  [ ! -e "$out/$name.log" ] || grep -v '^=== ' "$out/$name.log" | tail -n 15
}

: >"$out/steps.txt"
nvidia-smi --query-gpu=name,driver_version,compute_cap,clocks.max.sm --format=csv,noheader \
  >"$out/card.txt" 2>&1
lscpu >>"$out/card.txt" 2>&1
card=$(sed -n '1s/.*, *\([0-9]*\)\.\([0-9]\),.*/\1\2/p' "$out/card.txt")
make="${MAKE:-make} -f cuda.mk -j$(nproc)"
step build 180 $make cuda CUDA_ARCHS="${CUDA_ARCHS:-${card:-80 90}}"
if ! command -v "${GO:-go}" >/dev/null && [ -e cuda/build/programs.tar.xz ]; then
  step unpack 60 tar -C cuda/build -xJf cuda/build/programs.tar.xz
fi
step programs 120 $make gpu-programs
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/libsparseserve.so
export SPARSESERVE_CUDA_LIB

for tests in gpu attention live; do
  step $tests 100 cuda/build/$tests.test -test.run '^TestGPU' -test.short -test.v -test.timeout 5m
  echo "$tests: $(grep -c -e '--- PASS' "$out/$tests.log") passed," \
    "$(grep -c -e '--- FAIL' "$out/$tests.log") failed," \
    "$(grep -c -e '--- SKIP' "$out/$tests.log") skipped"
done
step calibrate 90 cuda/build/sparseserve calibrate run --quick --force --out "$out/quick.toml"
for kind in longbench prefix minference; do
  # Of a kind as many runs as there is time for; the interrupt ends the last.
  step "runs-$kind" "${RUNS:-55}" cuda/build/sparseserve validate run \
    "experiments/validate-$kind.toml" --split-every 16 --out "$out/$kind"
  [ ! -d "$out/$kind/live" ] || {
    echo "$(ls "$out/$kind"/live/*/summary.json 2>/dev/null | wc -l) live runs of $kind"
    tar -cJf "$out/$kind.tar.xz" -C "$out" "$kind"
  }
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
