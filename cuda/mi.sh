#!/bin/sh
# MInference's kernels and the dense prefill under them, in one call: build, checks, memory checker,
# table per head with PyTorch's dense kernels.
#
#   sh cuda/mi.sh [OUTPUT_FOLDER]      default ./out
#
# The table is OUTPUT_FOLDER/minference.csv. Where Go is missing, cuda/build/gpu.test and
# cuda/build/gpubench built elsewhere (make -f cuda.mk gpu-programs) are used. Stops at the first
# step that fails: nothing is timed that was not checked. SANITIZE=0 skips the memory checker.
set -eu
cd "$(dirname "$0")/.."
out=${1:-out}
mkdir -p "$out"
archs=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sed -n '1s/\.//p')
build() { ${MAKE:-make} -f cuda.mk "$@" CUDA_ARCHS="$archs" -j"$(nproc)" >>"$out/build.log" 2>&1 \
  || { tail -n 40 "$out/build.log"; exit 1; }; }

# check NAME TESTS: the tests of the library at hand, as many as passed.
check() {
  cuda/build/gpu.test -test.run "$2" -test.v -test.timeout 5m >"$out/$1.log" 2>&1 || {
    grep -v '^=== RUN' "$out/$1.log" | head -n 40; exit 1; }
  grep -c '^--- PASS' "$out/$1.log" | sed "s/$/ tests passed: $1/"
}

: >"$out/build.log"
build cuda gpu-programs
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/libsparseserve.so
export SPARSESERVE_CUDA_LIB
check minference '^TestGPU(MI|Prefill)'

# What other GPUs, and libraries of nvcc before 12, run: the same without Hopper's own instructions.
mkdir -p cuda/build/mma
cp -p cuda/build/*.o cuda/build/mma/
rm cuda/build/mma/mi_hopper.o
build cuda CUDA_BUILD=cuda/build/mma HOPPER=
SPARSESERVE_CUDA_LIB=$PWD/cuda/build/mma/libsparseserve.so check minference-mma \
  '^TestGPU(MI|Prefill)'

if [ "${SANITIZE:-1}" != 0 ] && command -v compute-sanitizer >/dev/null; then
  compute-sanitizer --tool memcheck --error-exitcode 9 cuda/build/gpu.test -test.short \
    -test.run '^TestGPU(MI|PrefillPaged)' -test.timeout 5m \
    >"$out/sanitizer.log" 2>&1 || { tail -n 40 "$out/sanitizer.log"; exit 1; }
  grep 'ERROR SUMMARY' "$out/sanitizer.log"
fi

cuda/build/gpubench -only minference >"$out/timing.txt" 2>&1 || { cat "$out/timing.txt"; exit 1; }
{
  sed -n '/^tokens,/,$p' "$out/timing.txt" | grep -v '^#'
  python3 cuda/reference.py minference 2>/dev/null || echo "no PyTorch here" >&2
} >"$out/minference.csv"
cat "$out/minference.csv"
grep '^#' "$out/timing.txt"
