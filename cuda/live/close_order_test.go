package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// closings counts digests of blocks by whether their layer's decode attention was launched before.
type closings struct {
	cuda.Machine
	attended, prefilled  bool // since the layer's upload
	before, after, wrong int
}

func (c *closings) Launch(op cuda.Operation, s cuda.Stream) error {
	switch op.(type) {
	case *cuda.CarryArgs:
		c.attended, c.prefilled = false, false
	case *cuda.DecodeArgs:
		c.attended = true
	case *cuda.PrefillArgs:
		c.prefilled = true
	case *cuda.DigestArgs:
		switch {
		case c.prefilled:
			c.wrong++
		case c.attended:
			c.after++
		default:
			c.before++
		}
	}
	return c.Machine.Launch(op, s)
}

// The GPU waits for the CPU's launches where a layer looks blocks up: what a decode's full block
// needs comes after the layer's attention. A prompt's blocks are closed before it.
func TestDecodesCloseBlocksAfterAttention(t *testing.T) {
	for _, name := range []string{"gqa/offload", "gqa/sparse"} {
		c := cases()[name]
		on := emulator.New(emulator.Config{Late: true, Seed: 3})
		m := &closings{Machine: on}
		c.run(t, m).check(t)
		on.Close()
		if m.before == 0 || m.after == 0 || m.wrong > 0 {
			t.Errorf("%s: %d digests before their layer's attention, %d after it, %d after a prompt's",
				name, m.before, m.after, m.wrong)
		}
	}
}
