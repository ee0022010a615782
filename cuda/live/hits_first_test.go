package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// startsOf notes of loads what they load and whether layers of the step have decoded.
type startsOf struct {
	pinning
	decoded bool // since the step began
	loads   []startOfLoad
}

type startOfLoad struct {
	from, blocks int64
	decoded      bool
}

func (o *startsOf) Launch(op cuda.Operation, s cuda.Stream) error {
	o.mu.Lock()
	switch a := op.(type) {
	case *cuda.EmbedArgs:
		o.decoded = false
	case *cuda.DecodeArgs:
		o.decoded = true
	case *cuda.MemcpyBlocksArgs:
		if from := o.pinning.on(a.Src)[0]; o.pinning.on(cuda.Ptr(from)) != nil { // else a save
			o.loads = append(o.loads, startOfLoad{from, a.Count, o.decoded})
		}
	}
	o.mu.Unlock()
	return o.Machine.Launch(op, s)
}

// A prefill whose first layer of a step is none of the step's first has its part of the prefix
// loaded before the step's first layer decodes, as any other that is loaded while one computes.
func TestFirstLayersOfPrefillsLoadAhead(t *testing.T) {
	c := cases()["mha/hits: layer"]
	c.spec.LoadEngine, c.spec.MaxInject = "memcpy", 40 // a layer a step
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &startsOf{pinning: pinning{Machine: on}}
	c.run(t, m).check(t)
	layer := int64(c.shape.HeadsKV * c.spec.BlockTokens * c.shape.HeadDim * 4)
	blocks := int64(64 / c.spec.BlockTokens * c.shape.HeadsKV) // at least, of a prefix
	second := 0
	for i, l := range m.loads {
		for _, of := range m.loads[:i] {
			if l.from != of.from+layer || l.blocks != of.blocks || l.blocks < blocks {
				continue
			}
			if second++; l.decoded {
				t.Errorf("the second layer's %d blocks load after the first has decoded", l.blocks)
			}
		}
	}
	if second == 0 {
		t.Errorf("of %d loads none is of a second layer", len(m.loads))
	}
}
