#!/bin/sh
# One visit to a GPU, within minutes: what the live loop and its model need to be measured anew. Builds the library for the card that is there, then
# checks the live device and the kernels, times the host's bookkeeping, and calibrates with the probes of the live loop.
#
#   sh cuda/visit.sh [OUTPUT_FOLDER] [SECONDS]      default ./out/visit, 480 seconds in all
#
# Where Go or nvcc is missing, programs and library in cuda/build are used as they were built elsewhere (make cuda gpu-programs). A step that fails or
# runs out of time does not keep the next from running; the exit status says whether all went well. POOL is the host pool of calibrate in GiB (64).
# calibrate resumes from the samples in the output folder.
set -u
cd "$(dirname "$0")/.."
out=${1:-out/visit}
budget=${2:-480}
mkdir -p "$out"
begin=$(date +%s)
failed=
: >"$out/steps.txt"

left() { echo $((begin + budget - $(date +%s))); }

# step NAME SECONDS COMMAND..: runs for at most the given seconds and what is left of the budget; all that it prints goes to NAME.log.
step() {
  name=$1 most=$2
  shift 2
  rest=$(left)
  [ "$rest" -lt "$most" ] && most=$rest
  if [ "$most" -lt 5 ]; then
    status="no time left"
  else
    from=$(date +%s)
    timeout -s INT -k 10 "$most" "$@" >"$out/$name.log" 2>&1
    code=$?
    status="ok"
    [ $code -eq 0 ] || status="exit status $code"
    [ $code -ne 124 ] || status="out of time"
    status="$status, $(($(date +%s) - from)) s"
  fi
  echo "$name: $status" | tee -a "$out/steps.txt"
  case $status in ok*) return 0 ;; esac
  failed="$failed $name"
  [ ! -e "$out/$name.log" ] || grep -v '^=== ' "$out/$name.log" | tail -n 15
  return 1
}

nvidia-smi --query-gpu=name,driver_version,compute_cap,clocks.max.sm --format=csv,noheader >"$out/card.txt" 2>&1
card=$(sed -n '1s/.*, *\([0-9]*\)\.\([0-9]\),.*/\1\2/p' "$out/card.txt")
if command -v "${NVCC:-nvcc}" >/dev/null; then
  step build 240 "${MAKE:-make}" -f cuda.mk -j"$(nproc)" cuda CUDA_ARCHS="${CUDA_ARCHS:-${card:-80 90}}"
fi
step programs 120 "${MAKE:-make}" -f cuda.mk gpu-programs
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/libsparseserve.so
export SPARSESERVE_CUDA_LIB

# The live device, its selections and its batched copies among the cases; then the kernels that it launches.
step live 90 cuda/build/live.test -test.run '^TestGPU' -test.v -test.timeout 5m
step kernels 60 cuda/build/gpu.test -test.run '^TestGPU(Select.*|Decode.*|PSA.*|KVWrite|Digest|Scores|Loads.*|Saves|SaveWaits.*|Copies.*)$' -test.v -test.timeout 5m
# Bookkeeping of 1,024 head groups x 64 blocks x batch 16, and the live loop's own share without a driver.
step bookkeeping 25 cuda/build/sim.test -test.run '^$' -test.bench Bookkeeping -test.count 2
step host 35 cuda/build/live.test -test.run '^$' -test.bench Host -test.benchtime 200x -test.count 1
step calibrate 330 cuda/build/sparseserve calibrate --pool "${POOL:-64}" --out "$out/calibration.toml"

grep -h '^Benchmark' "$out/bookkeeping.log" "$out/host.log" 2>/dev/null
for log in live kernels; do
  [ ! -e "$out/$log.log" ] || echo "$log: $(grep -c -- '--- PASS' "$out/$log.log") passed, $(grep -c -- '--- FAIL' "$out/$log.log") failed, $(grep -c -- '--- SKIP' "$out/$log.log") skipped"
done
[ ! -e "$out/calibration.toml" ] || sed -n '/^\[host\]/,/^\[reference\]/p' "$out/calibration.toml"
# Plots are many files: one archive.
if [ -d "$out/calibration" ]; then
  tar -cf "$out/plots.tar" -C "$out" calibration && rm -r "$out/calibration"
fi
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
