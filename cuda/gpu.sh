#!/bin/sh
# Everything that needs the GPU, in one call: build, checks, memory checker once, timing table with
# its references.
#
#   sh cuda/gpu.sh [OUTPUT_FOLDER] [SECTIONS]      default ./out, all sections of gpubench
#
# Where Go is missing, cuda/build/gpu.test and cuda/build/gpubench built elsewhere (make -f cuda.mk
# gpu-programs) are used. Stops at the first step that fails: nothing is timed that was not checked.
# SANITIZE=0 leaves the memory checker out, SANITIZE=all adds the checkers of races and barriers,
# which take minutes.
set -eu
cd "$(dirname "$0")/.."
out=${1:-out}
sections=${2:-}
mkdir -p "$out"

${MAKE:-make} -f cuda.mk cuda gpu-programs -j"$(nproc)" >"$out/build.log" 2>&1 || {
  tail -n 40 "$out/build.log"; exit 1; }
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/libsparseserve.so
export SPARSESERVE_CUDA_LIB

echo "== checks"
if ! cuda/build/gpu.test -test.run '^TestGPU' -test.v -test.timeout 10m >"$out/checks.log" 2>&1
then
  grep -v '^=== RUN' "$out/checks.log" | head -n 60
  echo "checks failed: nothing is timed" >&2
  exit 1
fi
grep -c '^--- PASS' "$out/checks.log" | sed 's/$/ tests passed/'

# The live device: its logits against the reference's, its tokens against HuggingFace's where
# PyTorch and transformers are.
if python3 -c 'import torch, transformers' 2>/dev/null; then
  python3 cuda/live/hf.py "$out/hf" >"$out/hf.log" 2>&1 || { tail -n 20 "$out/hf.log"; exit 1; }
  SPARSESERVE_HF_FIXTURES=$PWD/$out/hf
  case $out in /*) SPARSESERVE_HF_FIXTURES=$out/hf ;; esac
  export SPARSESERVE_HF_FIXTURES
fi
for tests in live latent; do
  if ! cuda/build/$tests.test -test.run '^TestGPU' -test.v -test.timeout 10m >"$out/$tests.log" \
    2>&1; then
    grep -v '^=== RUN' "$out/$tests.log" | head -n 60
    exit 1
  fi
done
cat "$out/live.log" "$out/latent.log" | grep -c -- '--- PASS: TestGPU.*/' \
  | sed 's/$/ live runs passed/'

# What GPUs with less shared memory run, checked on this one.
${MAKE:-make} -f cuda.mk cuda CUDA_BUILD=cuda/build/shallow CUDA_DEFINES=-DSS_SHALLOW_RINGS \
  -j"$(nproc)" >>"$out/build.log" 2>&1
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/shallow/libsparseserve.so cuda/build/gpu.test \
  -test.run '^TestGPU(Decode|PSA)' -test.v >"$out/checks-shallow.log" 2>&1 || {
  grep -v '^=== RUN' "$out/checks-shallow.log" | head -n 60
  exit 1
}
grep -c '^--- PASS' "$out/checks-shallow.log" | sed 's/$/ tests passed with shallow rings/'

# Tests of the sanitizers' runs.
attention='Decode|PSA|Prefill|PrefillStrides|PrefillPaged'
copies='Loads.*|Saves'
layer='Embed|RMSNorm.*|Rope|SiluMul|Argmax|Digest|Scores|Select.*'
if [ "${SANITIZE:-1}" != 0 ]; then
  echo "== compute-sanitizer"
  if command -v compute-sanitizer >/dev/null; then
    # Memory errors and uninitialised shared memory hide from value checks. cuBLAS is not ours to
    # check.
    compute-sanitizer --tool memcheck --error-exitcode 9 cuda/build/gpu.test \
      -test.run "GPU($attention|$layer|DecodeWith.*|DecodeWorkspace.*|PSAPipeline|$copies)\$" \
      -test.timeout 10m >"$out/sanitizer.log" 2>&1 || { tail -n 40 "$out/sanitizer.log"; exit 1; }
    grep 'ERROR SUMMARY' "$out/sanitizer.log"
    for tool in racecheck synccheck; do
      [ "${SANITIZE:-1}" = all ] || continue
      timeout 240 compute-sanitizer --tool "$tool" --error-exitcode 9 cuda/build/gpu.test \
        -test.short -test.timeout 10m \
        -test.run "GPU(Decode.*|PSA|Prefill|PrefillPaged|$layer|TopK)\$" \
        >"$out/$tool.log" 2>&1 || {
        tail -n 40 "$out/$tool.log"
        exit 1
      }
      grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/$tool.log" | sed "s/^/$tool /"
    done
  else
    echo "compute-sanitizer is not on the PATH: not run"
  fi
fi

echo "== timing"
cuda/build/gpubench ${sections:+-only "$sections"} >"$out/timing.txt" 2>&1 || {
  cat "$out/timing.txt"; exit 1; }
cat "$out/timing.txt"

if [ -z "$sections" ] && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null
then
  echo
  echo "references from PyTorch"
  python3 cuda/reference.py | tee "$out/reference.txt"
fi
