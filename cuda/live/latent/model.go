package latent

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
)

// Shape is a model's shape: DeepSeek-V3.2 without experts.
type Shape struct {
	Layers, Hidden, Heads, FFN, Vocab    int
	Rank, QRank, Rope, Nope, Value       int // of latent attention
	TopK, IndexHeads, IndexDim, Capacity int // Capacity: tokens of the longest context
}

// The norms' epsilon and the rotary base of DeepSeek-V3's config.json.
const (
	eps   = 1e-6
	theta = 10000
)

// width is the number of values in a token's row; head is the number in a query head.
func (s *Shape) width() int { return s.Rank + s.Rope }
func (s *Shape) head() int  { return s.Nope + s.Rope }

// RowBytes returns the bytes of a token's row in one layer; KeyBytes returns the bytes of its key.
func (s *Shape) RowBytes() int { return 2 * s.width() }
func (s *Shape) KeyBytes() int { return 2 * s.IndexDim }

// invFreq returns the rotation per token, in radians.
func (s *Shape) invFreq() []float32 { return weights.Rope{Theta: theta}.InvFreq(s.Rope) }

// validate returns an error for a shape that the kernels do not support, with the model's key.
func (s *Shape) validate() error {
	for _, c := range []struct {
		ok        bool
		key, want string
		got       int
	}{
		{s.Hidden%8 == 0 && s.Hidden <= 32768, "hidden", "a multiple of 8, at most 32768", s.Hidden},
		{s.FFN%8 == 0, "ffn", "a multiple of 8", s.FFN},
		{s.Rank%8 == 0 && s.Rank > 0 && s.Rank <= 512, "kv_lora_rank", "a multiple of 8, at most 512",
			s.Rank},
		{s.QRank%8 == 0 && s.QRank > 0 && s.QRank <= 32768, "q_lora_rank",
			"a multiple of 8, at most 32768", s.QRank},
		{s.Rope%8 == 0 && s.Rope > 0 && s.Rope <= 128, "qk_rope_dim", "a multiple of 8, at most 128",
			s.Rope},
		{s.Nope%2 == 0 && s.Nope <= 4096, "qk_nope_dim", "an even number, at most 4096", s.Nope},
		{s.Value%2 == 0, "v_head_dim", "an even number", s.Value},
		{s.IndexDim >= s.Rope && s.IndexDim <= 1024 && s.IndexDim%8 == 0, "index_head_dim",
			"a multiple of 8 from qk_rope_dim to 1024", s.IndexDim},
		{s.IndexHeads*s.IndexDim <= 16384, "index_heads",
			"at most 16384 values of all heads of the indexer", s.IndexHeads},
		{s.TopK <= cuda.TopKMax, "index_top_k", fmt.Sprintf("at most %d", cuda.TopKMax), s.TopK},
	} {
		if !c.ok {
			return fmt.Errorf("live: %s = %d: the kernels want %s", c.key, c.got, c.want)
		}
	}
	return nil
}

// kind names a tensor of a layer, or of the model.
type kind int

const (
	embed kind = iota
	attnNorm
	qDown
	qNorm
	qUp
	kvDown
	kvNorm
	keyUp
	valueUp
	out
	indexQ
	indexKey
	indexNorm
	indexBias
	indexWeight
	mlpNorm
	gateUp
	down
	norm
	head
	kinds
)

// tensorOf is a tensor's size and the distribution of its values.
type tensorOf struct {
	rows, in int  // linears: [rows][in]
	constant bool // norms are ones, the bias of one zeros
	model    bool // of no layer
}

// tensors returns the shape's tensors by kind. Layouts are as in reference.LatentLayer.
func (s *Shape) tensors() [kinds]tensorOf {
	one := func(n int) tensorOf { return tensorOf{rows: 1, in: n, constant: true} }
	return [kinds]tensorOf{
		embed: {s.Vocab, s.Hidden, false, true}, head: {s.Vocab, s.Hidden, false, true},
		norm:     {1, s.Hidden, true, true},
		attnNorm: one(s.Hidden), mlpNorm: one(s.Hidden), qNorm: one(s.QRank), kvNorm: one(s.Rank),
		indexNorm: one(s.IndexDim), indexBias: one(s.IndexDim),
		qDown: {rows: s.QRank, in: s.Hidden}, qUp: {rows: s.Heads * s.head(), in: s.QRank},
		kvDown: {rows: s.width(), in: s.Hidden},
		keyUp:  {rows: s.Heads * s.Rank, in: s.Nope}, valueUp: {rows: s.Heads * s.Value, in: s.Rank},
		out:         {rows: s.Hidden, in: s.Heads * s.Value},
		indexQ:      {rows: s.IndexHeads * s.IndexDim, in: s.QRank},
		indexKey:    {rows: s.IndexDim, in: s.Hidden},
		indexWeight: {rows: s.IndexHeads, in: s.Hidden},
		gateUp:      {rows: 2 * s.FFN, in: s.Hidden}, down: {rows: s.Hidden, in: s.FFN},
	}
}

// fill returns the seed and the scale of a tensor's values: linears keep the variance of their
// input.
func (t tensorOf) fill(seed uint64, k kind, layer int) (uint64, float32) {
	name := fnv.New64a()
	fmt.Fprintf(name, "latent.%d.%d", layer, k)
	scale := 1.0
	if k != embed {
		scale = math.Sqrt(3 / float64(t.in))
	}
	return cuda.Mix(seed ^ cuda.Mix(name.Sum64())), float32(scale)
}

// values returns a random model's tensors on the host, equal to the GPU's, for the reference.
func (s *Shape) values(seed uint64, k kind, layer int) []cuda.Half {
	t := s.tensors()[k]
	values := make([]cuda.Half, t.rows*t.in)
	if t.constant {
		for i := range values {
			if k != indexBias {
				values[i] = 0x3c00 // 1
			}
		}
		return values
	}
	name, scale := t.fill(seed, k, layer)
	cuda.Fill(values, name, scale)
	return values
}

// each calls f for every tensor of the model.
func (s *Shape) each(f func(k kind, layer int, t tensorOf) error) error {
	for k, t := range s.tensors() {
		for layer := range s.Layers {
			if t.model && layer > 0 {
				break
			}
			if err := f(kind(k), layer, t); err != nil {
				return err
			}
		}
	}
	return nil
}
