package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// closings counts digests and saves of blocks by whether their layer's attention was launched
// before.
type closings struct {
	cuda.Machine
	before                      int  // in this layer, so far
	attended, prefilled, rounds bool // in this layer, so far
	early, late, wrong          int  // of all layers
}

func (c *closings) Launch(op cuda.Operation, s cuda.Stream) error {
	switch op.(type) {
	case *cuda.SiluMulArgs: // after the layer's attention
		c.endLayer()
	case *cuda.DecodeArgs:
		c.attended = true
	case *cuda.PrefillArgs:
		c.prefilled = true
	case *cuda.PSAArgs:
		c.rounds = true
	case *cuda.DigestArgs, *cuda.GPUScatterArgs:
		switch {
		case c.prefilled || c.rounds:
			c.wrong++
		case c.attended:
			c.late++
		default:
			c.before++
		}
	}
	return c.Machine.Launch(op, s)
}

// endLayer judges what came before attention by what attended.
func (c *closings) endLayer() {
	if c.attended && !c.prefilled && !c.rounds {
		c.wrong += c.before
	} else {
		c.early += c.before
	}
	c.before, c.attended, c.prefilled, c.rounds = 0, false, false, false
}

// The GPU waits for the CPU's launches where a layer looks blocks up: where a layer only decodes,
// what a full block needs comes after attention. Where prompts or rounds attend it comes before.
func TestDecodesCloseBlocksAfterAttention(t *testing.T) {
	for name, decodes := range map[string]bool{
		"gqa/offload": true, "gqa/sparse": true, "gqa/offload, dense": true, "gqa/psa": false,
	} {
		c := cases()[name]
		on := emulator.New(emulator.Config{Late: true, Seed: 3})
		m := &closings{Machine: on}
		c.run(t, m).check(t)
		on.Close()
		m.endLayer()
		if m.early == 0 || decodes != (m.late > 0) || m.wrong > 0 {
			t.Errorf("%s: %d digests and saves before their layer's attention, %d after, %d misplaced",
				name, m.early, m.late, m.wrong)
		}
	}
}
