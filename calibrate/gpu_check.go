package calibrate

import (
	"bytes"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// Checks of kernel results against the float64 reference.

// tolerance is the maximum error of a result relative to its length, for fp16 operands and outputs.
const tolerance = 1e-2

// near compares a row of fp16 in device memory with the reference.
func (g *gpuRun) near(from cuda.Ptr, want []float64, what string, values ...any) {
	g.compare(g.floats(from, int64(len(want))), want, what, values...)
}

// compare checks a row against the reference; what and its values name it. NaN never passes.
func (g *gpuRun) compare(got, want []float64, what string, values ...any) {
	var off, length float64
	for i, w := range want {
		off += (got[i] - w) * (got[i] - w)
		length += w * w
	}
	if !(math.Sqrt(off) <= tolerance*math.Sqrt(length)+1e-4) {
		g.fail(what+" is off by %.2g of its length", append(values, math.Sqrt(off/length))...)
	}
}

// floats downloads fp16 values; zeros after an error.
func (g *gpuRun) floats(from cuda.Ptr, n int64) []float64 {
	return cuda.Floats(download[cuda.Half](g, from, n))
}

// download returns values of device memory; zeros after an error.
func download[T any](g *gpuRun, from cuda.Ptr, n int64) []T {
	values := make([]T, n)
	g.try(func() error { return cuda.Download(g.s, values, from) })
	return values
}

// sameBytes compares device with host memory. what and its values name it.
func (g *gpuRun) sameBytes(device cuda.Ptr, host []byte, what string, values ...any) {
	if !bytes.Equal(download[byte](g, device, int64(len(host))), host) {
		g.fail(what+": bytes differ", values...)
	}
}

// attention recomputes one row of attention over the tokens, rows of K and V, that keys adds.
func (g *gpuRun) attention(query cuda.Ptr, d int64, scale float32,
	keys func(add func(k, v []float64))) []float64 {
	q, sum, row := g.floats(query, d), reference.NewSoftmax(int(d)), make([]float64, d)
	keys(func(k, v []float64) { sum.Attend(q, k, v, float64(scale)) })
	sum.Result(row)
	return row
}

// drawn returns the indices of the results to compare: the first, the last, and random others.
func (g *gpuBench) drawn(count int64) []int64 {
	all := []int64{0, count - 1}
	for range min(count, 30) {
		all = append(all, g.r.Int64N(count))
	}
	return all
}

// permuted returns 0 to n-1 in random order.
func (g *gpuBench) permuted(n int64) []int32 {
	all := make([]int32, n)
	for i, at := range g.r.Perm(int(n)) {
		all[i] = int32(at)
	}
	return all
}

// counted returns 0 to n-1.
func counted[T int32 | int64](n int64) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return all
}
