package emulator

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// Latent attention and its indexer. Values round to fp16 where sparseserve.h says.

func headLinear(m *access, a *cuda.HeadLinearArgs) {
	m.need(a.Tokens < 1<<16 && a.In > 0 && a.In <= 4096, "in of at most 4096")
	heads, in, out := int(a.Heads), int(a.In), int(a.Out)
	if a.Tokens == 0 {
		return
	}
	w := cuda.Floats(view[cuda.Half](m, "W", a.W, 0, heads*out*in))
	for t := range int(a.Tokens) {
		for h := range heads {
			x := cuda.Floats(view[cuda.Half](m, "X", a.X, t*int(a.XToken)+h*int(a.XHead), in))
			y := view[cuda.Half](m, "Y", a.Y, (t*heads+h)*out, out)
			for o := range y {
				sum := 0.0
				for i, v := range w[(h*out+o)*in:][:in] {
					sum += v * x[i]
				}
				y[o] = cuda.HalfOf(sum)
			}
		}
	}
}

func rotate(m *access, a *cuda.RotateArgs) {
	m.need(a.Dim > 0 && a.Dim%2 == 0, "an even dim")
	for t := range int(a.Tokens) {
		angle := anglesOf(m, a.Position, a.InvFreq, t, int(a.Dim))
		for h := range int(a.Heads) {
			x := view[cuda.Half](m, "X", a.X, t*int(a.TokenStride)+h*int(a.HeadStride), int(a.Dim))
			store(x, reference.Rope(cuda.Floats(x), angle, cuda.Rounded))
		}
	}
}

// anglesOf returns the angles by which a token's position rotates dim values.
func anglesOf(m *access, position, frequency cuda.Ptr, token, dim int) []float64 {
	p := *at[int32](m, "Position", position, token)
	angle := make([]float64, dim/2)
	for d, f := range view[float32](m, "InvFreq", frequency, 0, dim/2) {
		angle[d] = float64(float32(p) * f)
	}
	return angle
}

func latentWrite(m *access, a *cuda.LatentWriteArgs) {
	m.need(a.Rope > 0 && a.Rope%2 == 0 && a.Rank > 0 && a.Rank <= 1024,
		"an even rope, a rank of at most 1024")
	m.need(a.KeyDim >= a.Rope && a.KeyDim <= 1024, "keys of at least rope values, at most 1024")
	width, dim, eps := int(a.Rank+a.Rope), int(a.KeyDim), float64(a.Eps)
	for t := range int(a.Tokens) {
		tensor := func(arg string, p cuda.Ptr, first, n int) []float64 {
			return cuda.Floats(view[cuda.Half](m, arg, p, first, n))
		}
		angle := anglesOf(m, a.Position, a.InvFreq, t, int(a.Rope))
		row := reference.LatentRow(tensor("Latent", a.Latent, t*width, width),
			tensor("Norm", a.Norm, 0, int(a.Rank)), angle, eps, cuda.Rounded)
		store(view[cuda.Half](m, "Row", *at[cuda.Ptr](m, "RowTo", a.RowTo, t), 0, width), row)
		key := reference.IndexKey(tensor("Key", a.Key, t*dim, dim), tensor("KeyNorm", a.KeyNorm, 0, dim),
			tensor("KeyBias", a.KeyBias, 0, dim), angle, eps, cuda.Rounded)
		store(view[cuda.Half](m, "Key row", *at[cuda.Ptr](m, "KeyTo", a.KeyTo, t), 0, dim), key)
	}
}

func indexScores(m *access, a *cuda.IndexScoresArgs) {
	m.need(a.Heads > 0 && a.Dim > 0 && int(a.Heads)*int(a.Dim) <= 16384,
		"heads * dim of at most 16384")
	heads, dim := int(a.Heads), int(a.Dim)
	for i := range int(a.Rows) {
		n := int(*at[int32](m, "Context", a.Context, i))
		keys := view[cuda.Half](m, "Keys", *at[cuda.Ptr](m, "Key", a.Key, i), 0, n*dim)
		if n > int(a.Stride) {
			m.fault("Context", a.Context, 4, "row %d has %d tokens, scores are for %d", i, n, a.Stride)
		}
		scores := reference.IndexScores(
			cuda.Floats(view[cuda.Half](m, "Q", a.Q, i*heads*dim, heads*dim)),
			cuda.Floats(view[cuda.Half](m, "Weight", a.Weight, i*heads, heads)), cuda.Floats(keys),
			float64(a.Scale))
		to := view[float32](m, "Scores", a.Scores, i*int(a.Stride), n)
		for t := range to {
			to[t] = float32(scores[t])
		}
	}
}

func latentAttend(m *access, a *cuda.LatentAttendArgs) {
	m.need(a.Rank > 0 && a.Rank <= 512 && a.Rope >= 0 && a.Rope <= 128,
		"a rank of at most 512, rope of at most 128")
	heads, rank, rope := int(a.Heads), int(a.Rank), int(a.Rope)
	for i := range int(a.Rows) {
		n := int(*at[int32](m, "Count", a.Count, i))
		base := *at[cuda.Ptr](m, "KV", a.KV, i)
		var rows []float64
		order := make([]int32, n)
		for j, t := range view[int32](m, "List", a.List, i*int(a.Stride), n) {
			order[j] = int32(j)
			rows = append(rows,
				cuda.Floats(view[cuda.Half](m, "KV row", base, int(t)*(rank+rope), rank+rope))...)
		}
		for h := range heads {
			q := cuda.Floats(view[cuda.Half](m, "Q", a.Q, (i*heads+h)*rank, rank))
			turned := cuda.Floats(view[cuda.Half](m, "QRope", a.QRope, i*int(a.RopeRow)+h*int(a.RopeHead),
				rope))
			store(view[cuda.Half](m, "Out", a.Out, (i*heads+h)*rank, rank),
				reference.LatentAttend(q, turned, rows, order, float64(a.Scale)))
		}
	}
}
