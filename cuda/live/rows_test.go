package live_test

import (
	"sync"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// rowsOf counts linears by how many rows they have, once a step has begun.
type rowsOf struct {
	cuda.Machine
	mu      sync.Mutex
	embeds  int
	linears map[int32]int
}

func (o *rowsOf) Launch(op cuda.Operation, s cuda.Stream) error {
	o.mu.Lock()
	switch a := op.(type) {
	case *cuda.EmbedArgs:
		o.embeds++
	case *cuda.LinearArgs:
		if o.embeds > 0 {
			o.linears[a.Tokens]++
		}
	}
	o.mu.Unlock()
	return o.Machine.Launch(op, s)
}

// Linears have the rows that the engine chooses, in memory of their own: what is computed is the
// same.
func TestLinearsHaveTheirEnginesRows(t *testing.T) {
	for _, name := range []string{"gqa/plain prefill", "gqa/layer", "gqa/hits: layer"} {
		c := *cases()[name]
		c.linearRows = func(tokens int) int {
			switch n := (tokens + live.LinearGrid - 1) / live.LinearGrid * live.LinearGrid; {
			case tokens <= live.LinearGrid:
				return tokens
			case n == 2*live.LinearGrid: // takes longer than the multiple after it
				return 3 * live.LinearGrid
			default:
				return n
			}
		}
		on := emulator.New(emulator.Config{Late: true, Seed: 3})
		m := &rowsOf{Machine: on, linears: map[int32]int{}}
		c.run(t, m).check(t)
		on.Close()
		if m.linears[2*live.LinearGrid] > 0 || m.linears[3*live.LinearGrid] == 0 {
			t.Errorf("%s: linears by their rows: %v", name, m.linears)
		}
	}
}
