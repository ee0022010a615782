package weights

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/sparseserve/sparseserve/cuda"
)

// Random is a seeded model. Its values equal the values of ss_fill (cuda/fill.cu), so a GPU that
// fills its own tensors holds the same bits.
type Random struct {
	config Config
	seed   uint64
}

// NewRandom returns the random model of a shape, eps and rotary base defaulted by WithDefaults.
func NewRandom(c Config, seed uint64) (*Random, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	return &Random{c, seed}, nil
}

// Config returns the shape, defaults filled in.
func (r *Random) Config() Config { return r.config }

// Fill returns seed and scale of a tensor. A linear's outputs keep the variance of its inputs:
// uniform weights in +-sqrt(3 / in) have variance 1 / in. The embedding's scale is 1. Norms are
// ones and not filled.
func (r *Random) Fill(t Tensor) (seed uint64, scale float32, ok bool) {
	if t.isNorm() {
		return 0, 0, false
	}
	if t.Kind == Head && r.config.TiedEmbeddings {
		t.Kind = Embed
	}
	scale = 1
	if t.Kind != Embed {
		_, in := t.Shape(r.config)
		scale = float32(math.Sqrt(3 / float64(in)))
	}
	name := fnv.New64a()
	fmt.Fprint(name, t)
	return cuda.Mix(r.seed ^ cuda.Mix(name.Sum64())), scale, true
}

// Read writes the values of ss_fill, ones for a norm, or zeros for the bias of one.
func (r *Random) Read(t Tensor, dst []cuda.Half) error {
	if err := fits(r.config, t, dst); err != nil {
		return err
	}
	seed, scale, ok := r.Fill(t)
	if !ok {
		for i := range dst {
			if dst[i] = 0x3c00; t.Kind == IndexBias { // 1
				dst[i] = 0
			}
		}
		return nil
	}
	cuda.Fill(dst, seed, scale)
	return nil
}
