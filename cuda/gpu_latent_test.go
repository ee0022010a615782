//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// latentShape is a model's latent attention and its indexer.
type latentShape struct{ heads, rank, rope, nope, indexHeads, keyDim, context, topK int }

var latentShapes = []latentShape{
	{heads: 2, rank: 32, rope: 16, nope: 24, indexHeads: 3, keyDim: 32, context: 77, topK: 20},
	{heads: 128, rank: 512, rope: 64, nope: 128, indexHeads: 64, keyDim: 128, context: 3000,
		topK: 2048},
}

func gpuHalf(x float64) float64 { return HalfOf(x).Float() }

// frequencies returns the frequencies of a rotary embedding with n values.
func frequencies(dim int) []float32 {
	f := make([]float32, dim/2)
	for d := range f {
		f[d] = float32(math.Pow(10000, -2*float64(d)/float64(dim)))
	}
	return f
}

func anglesAt(position int32, freq []float32) []float64 {
	angle := make([]float64, len(freq))
	for d, f := range freq {
		angle[d] = float64(float32(position) * f)
	}
	return angle
}

func TestGPUHeadLinearAndRotate(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, s := range latentShapes {
			const tokens = 5
			width := s.nope + s.rope
			x, xf := g.normal(tokens*s.heads*width, 1)
			w, wf := g.normal(s.heads*s.rank*s.nope, 0.1)
			freq, position := frequencies(s.rope), []int32{0, 1, 7, 1000, 60001}
			at, y := upload(g, x), g.device(int64(2*tokens*s.heads*s.rank))
			g.must(g.Launch(&HeadLinearArgs{X: at, W: upload(g, w), Y: y, XToken: int64(s.heads * width),
				XHead: int64(width), Tokens: tokens, Heads: int32(s.heads), In: int32(s.nope),
				Out: int32(s.rank)}, 0))
			g.must(g.Launch(&RotateArgs{X: at + Ptr(2*s.nope), Position: upload(g, position),
				InvFreq: upload(g, freq), TokenStride: int64(s.heads * width), HeadStride: int64(width),
				Tokens: tokens, Heads: int32(s.heads), Dim: int32(s.rope)}, 0))
			var want []float64
			turned := append([]float64(nil), xf...)
			for i := range tokens * s.heads {
				head := xf[i*width:][:width]
				for o := range s.rank {
					sum := 0.0
					for j, v := range wf[(i%s.heads*s.rank+o)*s.nope:][:s.nope] {
						sum += v * head[j]
					}
					want = append(want, sum)
				}
				reference.RopePart(turned[i*width+s.nope:][:s.rope], anglesAt(position[i/s.heads], freq),
					gpuHalf)
			}
			g.near("head linear", Floats(download[Half](g, y, len(want))), want, s.rank, 1e-3, 1e-3)
			g.near("rotate", Floats(download[Half](g, at, len(x))), turned, width, 1e-3, 2e-3)
		}
	})
}

func TestGPULatentWrite(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, s := range latentShapes {
			const tokens, eps = 4, 1e-6
			width := s.rank + s.rope
			x, xf := g.normal(tokens*width, 3)
			k, kf := g.normal(tokens*s.keyDim, 2)
			norm, nf := g.normal(s.rank, 1)
			weight, wf := g.normal(s.keyDim, 1)
			bias, bf := g.normal(s.keyDim, 0.3)
			freq, position := frequencies(s.rope), []int32{0, 3, 999, 70000}
			rows, keys := g.device(int64(2*tokens*width)), g.device(int64(2*tokens*s.keyDim))
			var rowTo, keyTo []Ptr // in another order
			var wantRows, wantKeys []float64
			for i := range tokens {
				rowTo = append(rowTo, rows+Ptr(2*width*(tokens-1-i)))
				keyTo = append(keyTo, keys+Ptr(2*s.keyDim*(tokens-1-i)))
				from := tokens - 1 - i
				angle := anglesAt(position[from], freq)
				wantRows = append(wantRows, reference.LatentRow(xf[from*width:][:width], nf, angle, eps,
					gpuHalf)...)
				wantKeys = append(wantKeys, reference.IndexKey(kf[from*s.keyDim:][:s.keyDim], wf, bf, angle,
					eps, gpuHalf)...)
			}
			g.must(g.Launch(&LatentWriteArgs{Latent: upload(g, x), Key: upload(g, k),
				Norm:    upload(g, norm),
				KeyNorm: upload(g, weight), KeyBias: upload(g, bias), Position: upload(g, position),
				InvFreq: upload(g, freq), RowTo: upload(g, rowTo), KeyTo: upload(g, keyTo), Tokens: tokens,
				Rank: int32(s.rank), Rope: int32(s.rope), KeyDim: int32(s.keyDim), Eps: eps}, 0))
			g.near("rows", Floats(download[Half](g, rows, len(wantRows))), wantRows, width, 1e-3, 2e-3)
			g.near("keys", Floats(download[Half](g, keys, len(wantKeys))), wantKeys, s.keyDim, 1e-3,
				2e-3)
		}
	})
}

func TestGPULatentAttention(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, s := range latentShapes {
			for _, rows := range []int{1, 3} {
				g.latentAttention(fmt.Sprintf("%+v, %d rows", s, rows), s, rows)
			}
		}
	})
}

// latentAttention scores, selects and attends: scores and outputs are the reference's, and the
// selection is that of the scores.
func (g *gpu) latentAttention(what string, s latentShape, rows int) {
	width, head := s.rank+s.rope, s.nope+s.rope
	keys, kf := g.normal(s.context*s.keyDim, 1)
	kv, kvf := g.normal(s.context*width, 1)
	iq, iqf := g.normal(rows*s.indexHeads*s.keyDim, 1)
	iw, iwf := g.normal(rows*s.indexHeads, 1)
	q, qf := g.normal(rows*s.heads*s.rank, 1)
	turned, tf := g.normal(rows*s.heads*head, 1)
	key, base, context := make([]Ptr, rows), make([]Ptr, rows), make([]int32, rows)
	onKeys, onKV := upload(g, keys), upload(g, kv)
	for i := range rows { // the last sees less than is selected
		key[i], base[i], context[i] = onKeys, onKV, int32(s.context-i*(s.context-s.topK/2)/2)
	}
	scale, attendScale := float32(1/math.Sqrt(float64(s.indexHeads*s.keyDim))),
		float32(1/math.Sqrt(float64(head)))
	scores := g.device(int64(4 * rows * s.context))
	list, count, out := g.device(int64(4*rows*s.topK)), g.device(int64(4*rows)),
		g.device(int64(2*rows*s.heads*s.rank))
	onContext := upload(g, context)
	g.must(g.Launch(&IndexScoresArgs{Q: upload(g, iq), Weight: upload(g, iw), Key: upload(g, key),
		Context: onContext, Scores: scores, Rows: int32(rows), Heads: int32(s.indexHeads),
		Dim: int32(s.keyDim), Stride: int32(s.context), Scale: scale}, 0))
	g.must(g.Launch(&TopKArgs{Scores: scores, Blocks: onContext, List: list, Count: count,
		Units: int32(rows), ScoreStride: int32(s.context), ListStride: int32(s.topK),
		K: int32(s.topK)}, 0))
	g.must(g.Launch(&LatentAttendArgs{Q: upload(g, q), QRope: upload(g, turned) + Ptr(2*s.nope),
		KV: upload(g, base), List: list, Count: count, Out: out, RopeRow: int64(s.heads * head),
		RopeHead: int64(head), Rows: int32(rows), Heads: int32(s.heads), Rank: int32(s.rank),
		Rope: int32(s.rope), Stride: int32(s.topK), Scale: attendScale}, 0))
	got := download[float32](g, scores, rows*s.context)
	lists, counts := download[int32](g, list, rows*s.topK), download[int32](g, count, rows)
	outs := Floats(download[Half](g, out, rows*s.heads*s.rank))
	for i := range rows {
		n := int(context[i])
		own := make([]float64, n)
		for t := range own {
			own[t] = float64(got[i*s.context+t])
		}
		g.near(what+": scores", own, reference.IndexScores(iqf[i*s.indexHeads*s.keyDim:][:s.indexHeads*
			s.keyDim], iwf[i*s.indexHeads:][:s.indexHeads], kf[:n*s.keyDim], float64(scale)), n, 1e-5,
			1e-5)
		want := reference.TopK(own, s.topK, 0, 0)
		chosen := lists[i*s.topK:][:counts[i]]
		if fmt.Sprint(chosen) != fmt.Sprint(want) {
			g.t.Fatalf("%s: row %d selects others than its scores say", what, i)
		}
		for h := range s.heads {
			g.near(what+": attention", outs[(i*s.heads+h)*s.rank:][:s.rank],
				reference.LatentAttend(qf[(i*s.heads+h)*s.rank:][:s.rank],
					tf[(i*s.heads+h)*head+s.nope:][:s.rope], kvf, chosen, float64(attendScale)), s.rank, 1e-3,
				1e-3)
		}
	}
}
