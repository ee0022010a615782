package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"math"
	"sync"
)

// Results of kernels against the float64 reference.

// tolerance of a result, relative to its length: fp16 operands and outputs.
const tolerance = 1e-2

// near compares a row with the float64 reference. NaN never passes.
func near(what string, got []cuda.Half, want []float64) error {
	var off, length float64
	for i, w := range want {
		d := got[i].Float() - w
		off += d * d
		length += w * w
	}
	if !(math.Sqrt(off) <= tolerance*math.Sqrt(length)+1e-4) {
		return fmt.Errorf("%s is off by %.2g of its length", what, math.Sqrt(off/length))
	}
	return nil
}

// halves downloads fp16 values; floats also widens them.
func halves(s *cuda.Session, from cuda.Ptr, n int64) ([]cuda.Half, error) {
	h := make([]cuda.Half, n)
	return h, cuda.Download(s, h, from)
}

func floats(s *cuda.Session, from cuda.Ptr, n int64) ([]float64, error) {
	h, err := halves(s, from, n)
	values := halfValues()
	f := make([]float64, n)
	for i := range h {
		f[i] = values[h[i]]
	}
	return f, err
}

// halfValues are all fp16 values: K and V of long contexts are many.
var halfValues = sync.OnceValue(func() *[1 << 16]float64 {
	var v [1 << 16]float64
	for i := range v {
		v[i] = cuda.Half(i).Float()
	}
	return &v
})

// attend adds tokens, rows of k and v, to a running softmax.
func attend(sum *reference.Softmax, q, k, v []float64, scale float64) {
	d := len(q)
	for at := 0; at < len(k); at += d {
		score := 0.0
		for i, x := range q {
			score += x * k[at+i]
		}
		sum.Add(scale*score, v[at:at+d])
	}
}

// looked returns which of count results are compared: the ends and some
// between.
func (g *gpuBench) looked(count int64) []int64 {
	look := []int64{0, count - 1}
	for range min(count, 30) {
		look = append(look, g.r.Int64N(count))
	}
	return look
}
