package live_test

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// inTurn notes, of loads whose addresses the host reads, which come after which on the GPU.
type inTurn struct {
	pinning
	first  []int64               // source address of each load
	before map[cuda.Stream][]int // loads that a stream's next work comes after
	events map[cuda.Event][]int  // the same, when an event was recorded last
	after  [][]int               // of each load
	on     []cuda.Stream         // of each load
}

func (o *inTurn) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.MemcpyBlocksArgs); ok {
		o.mu.Lock()
		if from := o.pinning.on(a.Src)[0]; o.pinning.on(cuda.Ptr(from)) != nil { // else a save
			o.first, o.after = append(o.first, from), append(o.after, slices.Clone(o.before[s]))
			o.before[s] = append(o.before[s], len(o.first)-1)
			o.on = append(o.on, s)
		}
		o.mu.Unlock()
	}
	return o.Machine.Launch(op, s)
}

func (o *inTurn) EventRecord(e cuda.Event, s cuda.Stream) error {
	o.mu.Lock()
	o.events[e] = slices.Clone(o.before[s])
	o.mu.Unlock()
	return o.Machine.EventRecord(e, s)
}

func (o *inTurn) StreamWait(s cuda.Stream, e cuda.Event) error {
	o.mu.Lock()
	o.before[s] = append(o.before[s], o.events[e]...)
	o.mu.Unlock()
	return o.Machine.StreamWait(s, e)
}

// A layer's part of a prefix comes over the link after that of the layer before, the first two
// too: nothing that is needed later holds up what is needed now.
func TestLayersOfPrefixesLoadInTurn(t *testing.T) {
	c := cases()["mha/hits: layer"]
	c.spec.Offload.Load = "memcpy"
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &inTurn{pinning: pinning{Machine: on}, before: map[cuda.Stream][]int{},
		events: map[cuda.Event][]int{}}
	c.run(t, m).check(t)
	loads := map[cuda.Stream]int{}
	for _, s := range m.on {
		loads[s]++
	}
	layer := int64(c.shape.KVHeads * c.spec.BlockTokens * c.shape.HeadDim * 4)
	ahead := 0
	for i, from := range m.first {
		if 2*loads[m.on[i]] > len(m.on) {
			continue // where layers compute
		}
		ahead++
		before := -1
		for j, a := range m.first[:i] {
			if a == from-layer {
				before = j
			}
		}
		if !slices.Contains(m.after[i], before) {
			t.Errorf("load %d does not come after load %d of the layer before", i, before)
		}
	}
	if ahead == 0 || len(loads) != 2 {
		t.Fatalf("%d of %d loads are ahead, on %d streams", ahead, len(m.first), len(loads))
	}
}
