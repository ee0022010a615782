package emulator

import (
	"errors"
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// Absorbed attention is attention to keys and values that are projected out of the latents: queries
// go into the latent's space by the keys' weights, outputs come out of it by the values'.
func TestAbsorbedAttentionIsThatOfDecompressedKeys(t *testing.T) {
	const heads, rank, rope, nope, value, context = 3, 32, 8, 16, 24, 40
	const width, head = rank + rope, nope + rope
	g := newFixture(t, Config{})
	kv, kvf := g.normal(context*width, 1)
	q, qf := g.normal(heads*head, 1)
	up, upf := g.normal(heads*rank*nope, 0.3) // [head][rank][nope]: the keys' weights, transposed
	vw, vf := g.normal(heads*value*rank, 0.3)
	list := []int32{39, 3, 7, 0, 22}
	latent, out, values := g.device(2*heads*rank), g.device(2*heads*rank), g.device(2*heads*value)
	onQ := upload(g, q)
	g.must(g.Launch(&cuda.HeadLinearArgs{X: onQ, W: upload(g, up), Y: latent, XToken: heads * head,
		XHead: head, Tokens: 1, Heads: heads, In: nope, Out: rank}, 0))
	scale := 1 / math.Sqrt(head)
	g.must(g.Launch(&cuda.LatentAttendArgs{Q: latent, QRope: onQ + 2*nope,
		KV: upload(g, []cuda.Ptr{upload(g, kv)}), List: upload(g, list), Count: upload(g, []int32{5}),
		Out: out, RopeRow: heads * head, RopeHead: head, Rows: 1, Heads: heads, Rank: rank, Rope: rope,
		Stride: 5, Scale: float32(scale)}, 0))
	g.must(g.Launch(&cuda.HeadLinearArgs{X: out, W: upload(g, vw), Y: values, XToken: heads * rank,
		XHead: rank, Tokens: 1, Heads: heads, In: rank, Out: value}, 0))
	got := cuda.Floats(download[cuda.Half](g, values, heads*value))
	for h := range heads {
		weights, sum := make([]float64, len(list)), 0.0
		for i, t := range list {
			row := kvf[int(t)*width:][:width]
			score := 0.0
			for n := range nope {
				key := 0.0
				for r := range rank {
					key += row[r] * upf[(h*rank+r)*nope+n]
				}
				score += key * qf[h*head+n]
			}
			score += dot(row[rank:], qf[h*head+nope:][:rope])
			weights[i] = math.Exp(scale * score)
			sum += weights[i]
		}
		for v := range value {
			want := 0.0
			for i, t := range list {
				want += weights[i] / sum * dot(kvf[int(t)*width:][:rank], vf[(h*value+v)*rank:])
			}
			if d := math.Abs(got[h*value+v] - want); d > 4e-3*(1+math.Abs(want)) {
				t.Fatalf("head %d, value %d: %g, want %g", h, v, got[h*value+v], want)
			}
		}
	}
}

// An indexer's head counts where query and key agree, and not where they differ.
func TestIndexScores(t *testing.T) {
	g := newFixture(t, Config{})
	one, none := cuda.HalfOf(1), cuda.HalfOf(0)
	minus, two := cuda.HalfOf(-1), cuda.HalfOf(2)
	keys := upload(g, []cuda.Half{one, none, minus, none, one, two})
	scores := g.device(2 * 3 * 4)
	a := cuda.IndexScoresArgs{Q: upload(g, []cuda.Half{one, none, none, minus, two, one, one, one}),
		Weight:  upload(g, []cuda.Half{one, two, one, minus}),
		Key:     upload(g, []cuda.Ptr{keys, keys}),
		Context: upload(g, []int32{3, 2}), Scores: scores, Rows: 2, Heads: 2, Dim: 2,
		Stride: 3, Scale: 0.5}
	g.must(g.Launch(&a, 0))
	got := download[float32](g, scores, 6)
	// row 0: relu(k0) + 2 relu(-k1); row 1: relu(2 k0 + k1) - relu(k0 + k1)
	for i, want := range []float32{0.5, 0, 0.5, 0.5, 0} {
		if got[i] != want {
			t.Errorf("score %d is %g, want %g", i, got[i], want)
		}
	}
	a.Context = upload(g, []int32{4, 2})
	faults(t, "a context beyond its keys", errors.Join(g.Launch(&a, 0), g.DeviceSync()), "Keys",
		"past the end")
}
