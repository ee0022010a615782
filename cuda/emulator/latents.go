package emulator

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// Latent attention and its indexer. Values round to fp16 where sparseserve.h says.

func checkHeadLinear(c *checks, a *cuda.HeadLinearArgs) {
	c.need(a.Tokens >= 0 && a.Tokens < 1<<16 && a.Heads > 0 && a.Out > 0, "tokens, heads and out")
	c.need(a.In > 0 && a.In <= 4096, "in of at most 4096")
	c.need(a.Tokens == 0 || a.X != 0 && a.W != 0 && a.Y != 0, "x, w and y")
}

func headLinear(m *access, a *cuda.HeadLinearArgs) {
	heads, in, out := int(a.Heads), int(a.In), int(a.Out)
	if a.Tokens == 0 {
		return
	}
	w := floats(view[cuda.Half](m, "W", a.W, 0, heads*out*in))
	for t := range int(a.Tokens) {
		for h := range heads {
			x := floats(view[cuda.Half](m, "X", a.X, t*int(a.XToken)+h*int(a.XHead), in))
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

func checkRotate(c *checks, a *cuda.RotateArgs) {
	c.need(a.Tokens >= 0 && a.Heads > 0 && a.Dim > 0 && a.Dim%2 == 0, "tokens, heads, an even dim")
	if a.Tokens > 0 {
		c.given("x, position and inv_freq", a.X, a.Position, a.InvFreq)
	}
}

func rotate(m *access, a *cuda.RotateArgs) {
	for t := range int(a.Tokens) {
		angle := anglesOf(m, a.Position, a.InvFreq, t, int(a.Dim))
		for h := range int(a.Heads) {
			x := view[cuda.Half](m, "X", a.X, t*int(a.TokenStride)+h*int(a.HeadStride), int(a.Dim))
			store(x, reference.Rope(floats(x), angle, half))
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

func checkLatentWrite(c *checks, a *cuda.LatentWriteArgs) {
	c.need(a.Tokens >= 0 && a.Rope > 0 && a.Rope%2 == 0 && a.Eps >= 0, "tokens, an even rope, eps")
	c.need(a.Rank > 0 && a.Rank <= 1024, "a rank of at most 1024")
	c.need(a.KeyDim >= a.Rope && a.KeyDim <= 1024, "keys of at least rope values, at most 1024")
	if a.Tokens > 0 {
		c.given("latent, key and norms", a.Latent, a.Key, a.Norm, a.KeyNorm, a.KeyBias)
		c.given("position, inv_freq, row_to and key_to", a.Position, a.InvFreq, a.RowTo, a.KeyTo)
	}
}

func latentWrite(m *access, a *cuda.LatentWriteArgs) {
	width, dim, eps := int(a.Rank+a.Rope), int(a.KeyDim), float64(a.Eps)
	for t := range int(a.Tokens) {
		tensor := func(arg string, p cuda.Ptr, first, n int) []float64 {
			return floats(view[cuda.Half](m, arg, p, first, n))
		}
		angle := anglesOf(m, a.Position, a.InvFreq, t, int(a.Rope))
		row := reference.LatentRow(tensor("Latent", a.Latent, t*width, width),
			tensor("Norm", a.Norm, 0, int(a.Rank)), angle, eps, half)
		store(view[cuda.Half](m, "Row", *at[cuda.Ptr](m, "RowTo", a.RowTo, t), 0, width), row)
		key := reference.IndexKey(tensor("Key", a.Key, t*dim, dim), tensor("KeyNorm", a.KeyNorm, 0, dim),
			tensor("KeyBias", a.KeyBias, 0, dim), angle, eps, half)
		store(view[cuda.Half](m, "Key row", *at[cuda.Ptr](m, "KeyTo", a.KeyTo, t), 0, dim), key)
	}
}

func checkIndexScores(c *checks, a *cuda.IndexScoresArgs) {
	c.need(a.Rows >= 0 && a.Rows < 1<<16 && a.Heads > 0 && a.Dim > 0 && a.Stride > 0,
		"rows, heads, dim and stride")
	c.need(int(a.Heads)*int(a.Dim) <= 16384, "heads * dim of at most 16384")
	if a.Rows > 0 {
		c.given("q, weight, key, context and scores", a.Q, a.Weight, a.Key, a.Context, a.Scores)
	}
}

func indexScores(m *access, a *cuda.IndexScoresArgs) {
	heads, dim := int(a.Heads), int(a.Dim)
	for i := range int(a.Rows) {
		n := int(*at[int32](m, "Context", a.Context, i))
		keys := view[cuda.Half](m, "Keys", *at[cuda.Ptr](m, "Key", a.Key, i), 0, n*dim)
		if n > int(a.Stride) {
			m.fault("Context", a.Context, 4, "row %d has %d tokens, scores are for %d", i, n, a.Stride)
		}
		scores := reference.IndexScores(
			floats(view[cuda.Half](m, "Q", a.Q, i*heads*dim, heads*dim)),
			floats(view[cuda.Half](m, "Weight", a.Weight, i*heads, heads)), floats(keys),
			float64(a.Scale))
		to := view[float32](m, "Scores", a.Scores, i*int(a.Stride), n)
		for t := range to {
			to[t] = float32(scores[t])
		}
	}
}

func checkLatentAttend(c *checks, a *cuda.LatentAttendArgs) {
	c.need(a.Rows >= 0 && a.Rows < 1<<16 && a.Heads > 0 && a.Stride > 0, "rows, heads and stride")
	c.need(a.Rank > 0 && a.Rank <= 512 && a.Rope >= 0 && a.Rope <= 128,
		"a rank of at most 512, rope of at most 128")
	if a.Rows > 0 {
		c.given("q, q_rope, kv, list, count and out", a.Q, a.QRope, a.KV, a.List, a.Count, a.Out)
	}
}

func latentAttend(m *access, a *cuda.LatentAttendArgs) {
	heads, rank, rope := int(a.Heads), int(a.Rank), int(a.Rope)
	for i := range int(a.Rows) {
		n := int(*at[int32](m, "Count", a.Count, i))
		base := *at[cuda.Ptr](m, "KV", a.KV, i)
		var rows []float64
		order := make([]int32, n)
		for j, t := range view[int32](m, "List", a.List, i*int(a.Stride), n) {
			order[j] = int32(j)
			rows = append(rows,
				floats(view[cuda.Half](m, "KV row", base, int(t)*(rank+rope), rank+rope))...)
		}
		for h := range heads {
			q := floats(view[cuda.Half](m, "Q", a.Q, (i*heads+h)*rank, rank))
			turned := floats(view[cuda.Half](m, "QRope", a.QRope, i*int(a.RopeRow)+h*int(a.RopeHead),
				rope))
			store(view[cuda.Half](m, "Out", a.Out, (i*heads+h)*rank, rank),
				reference.LatentAttend(q, turned, rows, order, float64(a.Scale)))
		}
	}
}
