#!/bin/sh
# The live runs of a validation on all GPUs of this machine, one process each with its share of the
# CPUs; each starts the next run that no other has. Runs with offloading are slower side by side:
# figures to compare with a model are made one at a time (CUDA_VISIBLE_DEVICES=0).
#
#   sh cuda/validate.sh [CONFIG] [OUTPUT_FOLDER] [SECONDS]
#
# Default: experiments/validate-longbench.toml, ./out/validate-live, no limit.
#
# Compare them afterwards, on a machine without GPU too: sparseserve validate reuse CONFIG
# --out OUTPUT_FOLDER. Library and program in cuda/build are used as they were built (make cuda
# gpu-programs). Finished runs are kept whatever a limit or Ctrl-C stops; the same command runs the
# rest.
set -u
cd "$(dirname "$0")/.."
config=${1:-experiments/validate-longbench.toml}
out=${2:-out/validate-live}
limit=${3:-0}
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/libsparseserve.so
export SPARSESERVE_CUDA_LIB
gpus=$(nvidia-smi -L | wc -l)
[ "$gpus" -gt 0 ] || { echo "no GPU here" >&2; exit 1; }
cpus=$(($(nproc) / gpus))
mkdir -p "$out"
children=
stop() { for c in $children; do kill -INT "$c" 2>/dev/null; done; }
trap stop INT TERM

i=0
while [ $i -lt "$gpus" ]; do
  CUDA_VISIBLE_DEVICES=$i taskset -c $((i * cpus))-$((i * cpus + cpus - 1)) timeout -s INT \
    -k 20 "$limit" cuda/build/sparseserve validate live "$config" \
    --out "$out" >"$out/gpu$i.log" 2>&1 &
  children="$children $!"
  i=$((i + 1))
done
failed=0
for c in $children; do
  wait "$c" || failed=1
done
wait # for runs that an interrupt has stopped
for log in "$out"/gpu*.log; do
  tail -n 2 "$log"
done
echo "$(ls "$out/live" | wc -l) live runs in $out/live"
exit $failed
