package live_test

import (
	"sync"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
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
	c.spec.Offload.Load, c.spec.Prefill.MaxInject = "memcpy", 40 // a layer a step
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &startsOf{pinning: pinning{Machine: on}}
	c.run(t, m).check(t)
	layer := int64(c.shape.KVHeads * c.spec.BlockTokens * c.shape.HeadDim * 4)
	blocks := int64(64 / c.spec.BlockTokens * c.shape.KVHeads) // at least, of a prefix
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

// smsOf notes how many SMs the loads of each stream may hold.
type smsOf struct {
	cuda.Machine
	mu    sync.Mutex
	loads map[cuda.Stream]map[int32]int
}

func (o *smsOf) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.FlashH2DArgs); ok {
		o.mu.Lock()
		if o.loads[s] == nil {
			o.loads[s] = map[int32]int{}
		}
		o.loads[s][a.CTAs]++
		o.mu.Unlock()
	}
	return o.Machine.Launch(op, s)
}

// FlashH2D holds few SMs while a layer computes, and as many as are fastest alone otherwise.
func TestPrefixesLoadAheadOnFewSMs(t *testing.T) {
	c := cases()["mha/hits: layer"]
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &smsOf{Machine: on, loads: map[cuda.Stream]map[int32]int{}}
	c.run(t, m).check(t)
	alone, ahead := 0, 0
	for s, by := range m.loads {
		if len(by) != 1 || by[0]+by[live.AheadCTAs] == 0 {
			t.Errorf("loads of stream %d by how many CTAs they have: %v", s, by)
		}
		alone, ahead = alone+by[0], ahead+by[live.AheadCTAs]
	}
	if alone == 0 || ahead == 0 || len(m.loads) != 2 {
		t.Errorf("%d loads alone and %d ahead, on %d streams", alone, ahead, len(m.loads))
	}
}

// togetherOf notes, of each load that is made ahead, its blocks, and how many there were before it
// since something waited for them.
type togetherOf struct {
	cuda.Machine
	mu     sync.Mutex
	since  map[cuda.Stream]int
	blocks []int64
	behind []int
}

func (o *togetherOf) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.FlashH2DArgs); ok && a.CTAs == live.AheadCTAs {
		o.mu.Lock()
		o.blocks, o.behind = append(o.blocks, a.Count), append(o.behind, o.since[s])
		o.since[s]++
		o.mu.Unlock()
	}
	return o.Machine.Launch(op, s)
}

func (o *togetherOf) EventRecord(e cuda.Event, s cuda.Stream) error {
	o.mu.Lock()
	o.since[s] = 0
	o.mu.Unlock()
	return o.Machine.EventRecord(e, s)
}

// A layer's parts of several prefixes are one load: a second launch could begin only when SMs are
// free again.
func TestPrefixesOfALayerLoadTogether(t *testing.T) {
	c := *cases()["mha/hits: layer"]
	c.spec.Prefill.MaxInject = 1000
	c.lengths, c.content = []length{{96, 4}, {128, 4}, {96, 4}, {160, 4}, {112, 4}}, nil
	const later = 100 * des.Millisecond
	c.arrive = []des.Time{0, 0, later, later, later}
	hits := []int{64, 96, 64, 96, 64} // of texts 7 and 8: buffers of different lengths
	for i, l := range c.lengths {
		c.content = append(c.content, &prefix.Content{Prompt: []prefix.Piece{
			{ID: uint64(7 + i%2), Tokens: hits[i]}, {ID: uint64(20 + i), Tokens: l.prompt - hits[i]}}})
	}
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &togetherOf{Machine: on, since: map[cuda.Stream]int{}}
	c.run(t, m).check(t)
	all, together := int64((64+96+64)/c.spec.BlockTokens*c.shape.KVHeads), 0
	for i, n := range m.blocks {
		if n == all {
			together++
		}
		if m.behind[i] > 0 {
			t.Errorf("a load of %d blocks follows %d others of its layer", n, m.behind[i])
		}
	}
	if together == 0 {
		t.Errorf("blocks of loads ahead: %d; want %d of three prefixes", m.blocks, all)
	}
}

// Of two prefills that hit, one runs the last layers of a step and the other the first, and none
// the layer between: what is computed is what a run without hits computes.
func TestPrefixesLoadAfterLayersThatNothingRuns(t *testing.T) {
	for _, engine := range []string{"flash", "memcpy"} {
		c := *cases()["gqa/hits: layer"]
		c.spec.Offload.Load, c.spec.Prefill.MaxInject, c.spec.Prefill.ChunkTokens = engine, 64, 24
		c.lengths, c.content = []length{{96, 4}, {96, 4}, {96, 4}}, nil
		c.arrive = []des.Time{0, 100 * des.Millisecond, 100 * des.Millisecond}
		for i := range c.lengths {
			c.content = append(c.content, &prefix.Content{Prompt: []prefix.Piece{{ID: 7, Tokens: 64},
				{ID: uint64(20 + i), Tokens: 32}}})
		}
		on := emulator.New(emulator.Config{Late: true, Seed: 3})
		r := c.run(t, on)
		r.check(t)
		on.Close()
		if r.skipped == 0 {
			t.Errorf("%s: each layer before a step's last has rows", engine)
		}
	}
}
