package emulator

import "github.com/sparseserve/sparseserve/cuda"

// linear computes four tokens at a time, so that each weight is read once for four sums that do not
// wait for one another.
func linear(m *access, a *cuda.LinearArgs) {
	m.need(a.In > 0 && a.Out > 0, "in > 0 and out > 0")
	tokens, in, out := int(a.Tokens), int(a.In), int(a.Out)
	if tokens == 0 {
		return
	}
	x := cuda.Floats(view[cuda.Half](m, "X", a.X, 0, tokens*in))
	w := cuda.Floats(view[cuda.Half](m, "W", a.W, 0, out*in))
	y := view[cuda.Half](m, "Y", a.Y, 0, tokens*out)
	token := func(i int) []float64 { return x[min(i, tokens-1)*in:][:in] }
	for t := 0; t < tokens; t += 4 {
		x0, x1, x2, x3 := token(t), token(t+1), token(t+2), token(t+3)
		for o := range out {
			row := w[o*in:][:in]
			x0, x1, x2, x3 := x0[:len(row)], x1[:len(row)], x2[:len(row)], x3[:len(row)]
			var s0, s1, s2, s3 float64
			for i, v := range row {
				s0 += v * x0[i]
				s1 += v * x1[i]
				s2 += v * x2[i]
				s3 += v * x3[i]
			}
			for j, sum := range []float64{s0, s1, s2, s3}[:min(4, tokens-t)] {
				y[(t+j)*out+o] = cuda.HalfOf(sum)
			}
		}
	}
}
