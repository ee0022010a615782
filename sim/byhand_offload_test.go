package sim_test

import (
	"fmt"
	"testing"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// offloaded is 40 prompt tokens, ten full blocks a head, and two tokens more.
func offloaded(prefill string) *scenario {
	c := byHand(1000, sim.Arrival{Prompt: 40, Output: 3})
	c.spec.Offload.On, c.spec.Selection.On = true, true
	c.spec.Prefill.Split, c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = prefill, 40, 40
	return c
}

// After layer-segmented prefill the full blocks are in DRAM alone. The budget
// is five blocks a head: a sink, three picked, and the open block, which is
// new. So the first decode loads 4 blocks for each of 2 heads, and the second,
// with HBM ample, at most the few that its picks add.
func TestFirstDecodeAfterLayerSegmentsLoadsItsSelection(t *testing.T) {
	_, o, d := offloaded("layer").lives(t, nil)
	if len(d.loads) != 3 || d.loads[0] != 0 || d.loads[1] != 2*4 || d.loads[2] > 2*3 {
		t.Errorf("loads by step: %v, want 0, 8 and at most 6", d.loads)
	}
	expect(t, "selected", []int64{o.steps[0].Selected, o.steps[1].Selected, o.steps[2].Selected},
		[]int64{0, 10, 10})

	dense := offloaded("layer")
	dense.spec.Selection.On = false
	_, _, d = dense.lives(t, nil)
	expect(t, "loads of full attention", d.loads, []int64{0, 20, 0})

	mixed := offloaded("layer")
	mixed.spec.Selection.DenseLayers = 1
	_, _, d = mixed.lives(t, nil)
	expect(t, "first loads with one dense layer", d.loads[1], 10+4)
}

// Chunked prefill leaves its blocks in HBM: nothing is loaded while it is ample.
func TestDecodeAfterChunkedPrefillLoadsNothing(t *testing.T) {
	for _, selects := range []bool{true, false} {
		c := offloaded("chunked")
		c.spec.Selection.On = selects
		_, _, d := c.lives(t, nil)
		expect(t, fmt.Sprint("selects: ", selects), d.loads, []int64{0, 0, 0})
	}
}

// The prefill ends at 10 + 2 x 40 = 90 ms and its saves complete at 95: until then
// its ten blocks a head are held, afterwards only the open ones.
func TestSavesLandAndUnpin(t *testing.T) {
	block := tinyBlock()
	c := offloaded("chunked")
	held := map[int]int64{}
	_, o, _ := c.lives(t, func(o *outcome) error {
		held[int(o.server.Now()/ms)] = o.server.Left().Held / block
		return nil
	})
	// At 0, 90 and 100 a step has just begun; a new open block at 90.
	expect(t, "held blocks", held, map[int]int64{0: 20, 90: 22, 95: 2, 100: 2, 110: 0})
	expect(t, "saved", o.metrics.Summary().D2HBytes, 20*block)

	// Layer-segmented: buffers of two layers (the save queue holds less than one),
	// the open blocks and activations
	// are reserved until the last save has landed; metadata stays:
	// that of ten full blocks, two heads.
	c = offloaded("layer")
	meta := 20 * c.model.Geometry(4).MetaBytes
	buffers := 2*10*block + 40*(64+2*16)*2 // KV of two layers; hidden state and queries, fp16
	reserved := map[int]int64{}
	c.lives(t, func(o *outcome) error {
		reserved[int(o.server.Now()/ms)] = o.server.Left().Reserved
		return nil
	})
	expect(t, "reserved bytes", reserved,
		map[int]int64{0: buffers + 2*block + meta, 90: buffers + meta, 95: meta, 100: meta, 110: 0})
}

func tinyBlock() int64 {
	m := tiny(2, 1)
	return m.Geometry(4).BlockBytes
}

var _ sim.Device = (*cost.Device)(nil)

// asked notes what a device is asked to compute and to move.
type asked struct {
	metronome
	work  []sim.Work
	moves []kv.Moves
}

func (d *asked) Move(m *kv.Moves) error {
	d.moves = append(d.moves, kv.Moves{Layer: m.Layer, Loads: m.Loads, Saves: m.Saves,
		Prefix: m.Prefix})
	return d.metronome.Move(m)
}

func (d *asked) Compute(layer int, w *sim.Work) error {
	kept := *w
	kept.Prefill = append([]sim.Span(nil), w.Prefill...)
	d.work = append(d.work, kept)
	return d.metronome.Compute(layer, w)
}

// A prompt of 46 tokens in chunks of 27 and 19, then two decodes; blocks of four tokens, a budget
// of five blocks, the first of two layers dense.
func TestWorkByHand(t *testing.T) {
	c := offloaded("chunked")
	c.arrivals[0].Prompt, c.spec.Prefill.ChunkTokens, c.spec.Selection.DenseLayers = 46, 27, 1
	d := &asked{}
	o := &outcome{spy: &spy{Device: d}}
	o.server = c.server(t, o.spy)
	o.run(t, c, o.server.Check)
	chunk := func(query, prefix int, sparse bool) sim.Work {
		return sim.Work{Tokens: query, Prefill: []sim.Span{{Query: query, Prefix: prefix}},
			Sparse: sparse}
	}
	expect(t, "work", d.work, []sim.Work{
		// Tokens 0 to 27 fill 6 blocks, 27 to 46 five more, the 48th the twelfth.
		chunk(27, 0, false), chunk(27, 0, true),
		chunk(19, 27, false), chunk(19, 27, true),
		// 47 tokens are 12 blocks, the last with 3 tokens; 11 are full.
		{Tokens: 1, Decodes: 1, DecodeTokens: 47},
		{Tokens: 1, Decodes: 1, DecodeTokens: 4*4 + 3, ScoredBlocks: 11, Sparse: true},
		{Tokens: 1, Decodes: 1, DecodeTokens: 48},
		{Tokens: 1, Decodes: 1, DecodeTokens: 4*4 + 4, ScoredBlocks: 12, Sparse: true},
	})
	expect(t, "moves", d.moves, []kv.Moves{
		{Layer: 0, Saves: 6}, {Layer: 1, Saves: 6}, {Layer: 0, Saves: 5}, {Layer: 1, Saves: 5},
		{Layer: 0}, {Layer: 1}, {Layer: 0, Saves: 1}, {Layer: 1, Saves: 1},
	})
}

// A sample's loads are spread over the layers and sum up to what it counted.
func TestSampledLoadsAddUp(t *testing.T) {
	c := offloaded("layer")
	c.model = tiny(4, 4)
	c.hbm *= 8
	c.spec.Simulation.Heads, c.spec.Simulation.Groups = "sampled", 3
	d := &asked{}
	o := &outcome{spy: &spy{Device: d}}
	o.server = c.server(t, o.spy)
	o.run(t, c, nil)
	if want := int64(4 * 16); d.loads[1] != want || o.steps[1].Loaded != want {
		t.Errorf("%d blocks moved, %d recorded, want %d", d.loads[1], o.steps[1].Loaded, want)
	}
	for _, m := range d.moves[4:8] {
		expect(t, "loads of a layer", m.Loads, int64(16))
	}
	for i, w := range d.work[4:] {
		if !w.Sparse || w.DecodeTokens > 20 {
			t.Errorf("decode work %d is %+v, want sparse attention in every layer", i, w)
		}
	}
	sum := o.metrics.Summary()
	expect(t, "hit ratio", sum.HitRatio, 1-float64(o.spy.loads)/float64(2*5*16))
	expect(t, "H2D bytes", sum.H2DBytes, o.spy.loads*tinyBlock())
}
