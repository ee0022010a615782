#!/bin/sh
# Calibrates the GPU of this machine: builds the library, measures, and copies profile, samples and
# plots.
#
#   sh calibrate/gpu.sh DIR [name [calibrate's flags]]
#
# Needs nvcc and a driver. Without Go it runs the program at $SPARSESERVE, built elsewhere with
# CGO_ENABLED=0 (default .bin/sparseserve). The plots come as one archive, DIR/<name>-plots.tar.
set -eu
out=$1
name=${2:-gpu}
[ $# -lt 2 ] || shift
shift
program=${SPARSESERVE:-.bin/sparseserve}
mkdir -p "$out"
make -f cuda.mk -j "$(nproc)" cuda CUDA_ARCHS="${CUDA_ARCHS:-80 90}" >"$out/build.log" 2>&1 || {
  tail -20 "$out/build.log" >&2; exit 1; }
if command -v go >/dev/null; then
  program=./sparseserve
  CGO_ENABLED=0 go build -trimpath -o "$program" .
fi
status=0
"$program" calibrate run --out "out/$name.toml" "$@" >"$out/report.txt" 2>&1 || status=$?
tail -60 "$out/report.txt"
for file in "out/$name.toml" "out/$name.csv"; do
  [ ! -e "$file" ] || cp "$file" "$out/"
done
[ ! -d "out/$name" ] || tar -cf "$out/$name-plots.tar" -C out "$name"
exit $status
