#!/bin/sh
# One visit to a GPU, within minutes: what the live loop and its model need to be measured anew.
# Builds the library for the card that is there, then does the steps asked for, in this order:
#
#   checks      the live device and the kernels that it launches; the host's bookkeeping time
#   sparse      of these checks, those of sparse prefill and of greedy tokens against HuggingFace's,
#               and the patterns of a model's heads
#   calibrate   with the probes of the live loop; ends after its first copies where these show that
#               others disturb the host
#   host        of these, what the CPU does in a step: an engine for a built-in card, which the runs
#               name
#   bench       timing tables of kernels: sections BENCH of gpubench
#   runs        the live runs of CONFIG (experiments/validate-longbench.toml), one at a time in one
#               process, as many as there is time for; the host is measured once before them and
#               once after, as its servers differ by up to 40 % in the round trip of a layer
#
#   [STEPS="checks calibrate"] sh cuda/visit.sh [OUTPUT_FOLDER] [SECONDS]
#
# Default: ./out/visit, 660 seconds in all.
#
# Where Go or nvcc is missing, programs and library in cuda/build are used as they were built
# elsewhere (make cuda gpu-programs), the programs also from cuda/build/programs.tar.xz (make
# gpu-pack). A step that fails or runs out of time does not keep the next from running, but that no
# run is made where calibrate finds the host disturbed; the exit status is 0 if all went well. POOL
# is the host pool of calibrate in GiB (64), SPLIT which steps of the runs are split into phases:
# each n-th (64), GPU the card that the runs name (CONFIG's), ENGINE the file that the host's is
# written to (host.toml in the output folder). A step that is split is longer: its timed events wait
# for what a load has in flight: 0.2 to 0.8 ms in all where nothing loads, 2 ms where a prefix does.
# calibrate and runs resume from what is in the output folder. For runs that are to be compared with
# the calibration, let one visit of the same card do both.
set -u
cd "$(dirname "$0")/.."
out=${1:-out/visit}
budget=${2:-660}
steps=" ${STEPS:-checks calibrate} "
config=${CONFIG:-experiments/validate-longbench.toml}
mkdir -p "$out"
begin=$(date +%s)
failed=
: >"$out/steps.txt"

left() { echo $((begin + budget - $(date +%s))); }

# step NAME SECONDS COMMAND..: runs for at most the given seconds and what is left of the budget;
# all that it prints goes to NAME.log.
step() {
  name=$1 most=$2
  shift 2
  rm -f "$out/$name.log"
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

nvidia-smi --query-gpu=name,driver_version,compute_cap,clocks.max.sm --format=csv,noheader \
  >"$out/card.txt" 2>&1
lscpu >>"$out/card.txt" 2>&1
card=$(sed -n '1s/.*, *\([0-9]*\)\.\([0-9]\),.*/\1\2/p' "$out/card.txt")
if command -v "${NVCC:-nvcc}" >/dev/null; then
  step build 240 "${MAKE:-make}" -f cuda.mk \
    -j"$(nproc)" cuda CUDA_ARCHS="${CUDA_ARCHS:-${card:-80 90}}"
fi
if ! command -v "${GO:-go}" >/dev/null && [ -e cuda/build/programs.tar.xz ]; then
  step unpack 60 tar -C cuda/build -xJf cuda/build/programs.tar.xz
fi
step programs 120 "${MAKE:-make}" -f cuda.mk gpu-programs
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/libsparseserve.so
export SPARSESERVE_CUDA_LIB

asked() { case $steps in *" $1 "*) return 0 ;; esac; return 1; }

if asked checks; then
  # The live device, its selections and its batched copies among the cases; then the kernels that it
  # launches.
  step live 90 cuda/build/live.test -test.run '^TestGPU' -test.v -test.timeout 5m
  step latent 30 cuda/build/latent.test -test.run '^TestGPU' -test.v -test.timeout 5m
  copies='Loads.*|Saves|SaveWaits.*|Copies.*'
  step kernels 60 cuda/build/gpu.test \
    -test.run "^TestGPU(Streams.*|Select.*|Decode.*|PSA.*|KVWrite|Digest|Scores|$copies)\$" \
    -test.v -test.timeout 5m
  # Bookkeeping of 1,024 head groups x 64 blocks x batch 16, and the live loop's own share without a
  # driver.
  step bookkeeping 25 cuda/build/sim.test -test.run '^$' -test.bench Bookkeeping -test.count 2
  step host 35 cuda/build/live.test -test.run '^$' -test.bench Host -test.benchtime 200x \
    -test.count 1
fi
if asked sparse; then
  step sparse-live 120 cuda/build/live.test -test.run '^TestGPU/^sparse_prefill' -test.v \
    -test.timeout 5m
  step sparse-kernels 90 cuda/build/gpu.test -test.run '^TestGPU(MI|Prefill)' -test.short -test.v \
    -test.timeout 5m
  if python3 -c 'import torch, transformers' 2>/dev/null; then
    step hf 60 python3 cuda/live/hf.py "$out/hf"
    SPARSESERVE_HF_FIXTURES=$(cd "$out" && pwd)/hf
    export SPARSESERVE_HF_FIXTURES
    step greedy 60 cuda/build/live.test -test.run '^TestGPUGreedyIsHuggingFaces' -test.v \
      -test.timeout 5m
    step search 60 cuda/build/sparseserve paper patterns --live --tokens 1024 \
      --weights "$SPARSESERVE_HF_FIXTURES/llama3" --out "$out/found.json"
  fi
fi
quiet=yes
if asked calibrate; then
  step calibrate 640 cuda/build/sparseserve calibrate run --steady --pool "${POOL:-64}" \
    --out "$out/calibration.toml"
  # Interrupted, or on a disturbed host.
  if [ ! -e "$out/calibration.toml" ] || grep -qs "use this host's CPU" "$out/calibrate.log"
  then quiet=; fi
fi
engine=
if asked host; then
  engine=${ENGINE:-$out/host.toml}
  visit=
  asked runs && visit=--visit
  step host-engine 240 \
    cuda/build/sparseserve calibrate host $visit --force --out "$engine" || quiet=
fi
if asked bench; then
  step bench 60 cuda/build/gpubench -only "${BENCH:-overlap}"
fi
if asked runs && [ ! "$quiet" ]; then
  echo "runs: not without a calibration" | tee -a "$out/steps.txt"
elif asked runs; then
  after=0
  [ ! "$engine" ] || after=100
  step runs $(($(left) - after)) \
    cuda/build/sparseserve validate live "$config" \
    ${GPU:+--set gpu="$GPU"} ${engine:+--set system.engine="$engine"} \
    --split-every "${SPLIT:-64}" --out "$out"
  [ ! -d "$out/live" ] || echo "$(ls "$out/live" | wc -l) live runs in $out/live"
  [ ! "$engine" ] ||
    step host-after 120 cuda/build/sparseserve calibrate host --visit --out "$engine"
fi

grep -h '^Benchmark' "$out/bookkeeping.log" "$out/host.log" 2>/dev/null
count() { grep -c -e "--- $1" "$out/$log.log"; } # tests of $log that ended so
for log in live latent kernels sparse-live sparse-kernels greedy; do
  [ ! -e "$out/$log.log" ] ||
    echo "$log: $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
done
[ ! -e "$out/calibration.toml" ] || sed -n '/^\[host\]/,/^\[reference\]/p' "$out/calibration.toml"
# Plots are many files: one archive.
if [ -d "$out/calibration" ]; then
  tar -cf "$out/plots.tar" -C "$out" calibration && rm -r "$out/calibration"
fi
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
