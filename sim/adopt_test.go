package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// hitting is a prompt of 40 tokens of which 24, six blocks a head, are in DRAM.
func hitting(prefill, attention string) *scenario {
	c := offloaded(prefill)
	c.arrivals[0].Cached, c.spec.PrefixCache.Attend = 24, attention
	return c
}

// sharing is hitting by two requests, the second of which comes while the first decodes. The texts
// name their prefixes: equal ones are shared.
func sharing(prefill string, texts [2]uint64) *scenario {
	c := hitting(prefill, sim.PrefixDense)
	c.arrivals[0].Output = 20
	c.arrivals = append(c.arrivals, c.arrivals[0])
	c.arrivals[1].At = 55 * ms
	for i, text := range texts {
		c.arrivals[i].Content = &prefix.Content{Prompt: []prefix.Piece{{ID: text, Tokens: 24},
			{ID: uint64(20 + i), Tokens: 16}}}
	}
	return c
}

// askedBy runs a scenario on a device.
func (c *scenario) askedBy(t *testing.T, d sim.Device) *outcome {
	o := &outcome{spy: &spy{Device: d}}
	o.server = c.server(t, o.spy)
	o.run(t, c, o.server.Check)
	return o
}

// asks runs a scenario and returns what its device was asked in the first step's layers.
func (c *scenario) asks(t *testing.T) (o *outcome, moves []kv.Moves, work []sim.Work) {
	d := &asked{}
	o = c.askedBy(t, d)
	return o, d.moves, d.work
}

// Of 40 tokens 16 are prefilled, in 10 + 2 x 16 ms. A layer by itself has all six blocks of its
// prefix loaded into a buffer, chunks have them in the cache. What is selected are a sink
// and three more, whichever way the rest is prefilled, by digests of 64 bytes each, two blocks.
func TestPrefixesInDRAMByHand(t *testing.T) {
	for _, tc := range []struct {
		prefill, attention string
		loads, prefix      int64 // of a layer
		attended           int
		scored             int64
	}{
		{"layer", sim.PrefixDense, 0, 6, 24, 0},
		{"chunked", sim.PrefixDense, 0, 6, 24, 0},
		{"layer", sim.PrefixSelected, 4, 2, 16, 6},
		{"chunked", sim.PrefixSelected, 4, 2, 16, 6},
	} {
		o, moves, work := hitting(tc.prefill, tc.attention).asks(t)
		name := tc.prefill + ", " + tc.attention
		for layer := range 2 {
			expect(t, name, moves[layer], kv.Moves{Layer: layer, Loads: tc.loads, Prefix: tc.prefix,
				Saves: 4})
			expect(t, name, work[layer], sim.Work{Tokens: 16, Sparse: true,
				Prefill: []sim.Span{{Query: 16, Prefix: tc.attended}}, ScoredBlocks: tc.scored})
		}
		first := o.steps[0]
		expect(t, name, first.Loaded, 2*(tc.loads+tc.prefix))
		expect(t, name, o.requests[0].FirstToken, 42*ms)
		if tc.attention == sim.PrefixDense {
			expect(t, name, first.Resumed, first.Loaded)
		}
	}
	for _, prefill := range []string{"layer", "chunked"} {
		c := hitting(prefill, sim.PrefixDense)
		c.spec.Selection.On, c.engine.LoadsInTurn = false, true
		_, moves, _ := c.asks(t)
		overlapped := map[string]int64{"layer": 6, "chunked": 0}[prefill] // chunks wait for their slots
		expect(t, "prefix of full attention", moves[0].Prefix, overlapped)
		expect(t, "loads of full attention", moves[0].Loads, 6-overlapped)
	}
}

// A prompt is found by content once it is saved, though its request has ended with its first token:
// of 40 tokens 36, since one is computed.
func TestShortRequestsLeaveTheirPrompts(t *testing.T) {
	for _, prefill := range []string{"layer", "chunked"} {
		c := offloaded(prefill)
		c.spec.PrefixCache.Mode = sim.PrefixVLLM
		c.arrivals[0].Output = 1
		c.arrivals[0].Content = &prefix.Content{Prompt: []prefix.Piece{{ID: 7, Tokens: 40}}}
		c.arrivals = append(c.arrivals, c.arrivals[0])
		c.arrivals[1].At = 500 * ms
		o, _, _ := c.asks(t)
		expect(t, prefill, o.requests[1].Hit, 36)
	}
}

// A layer's part of a prefix is loaded once, with its first chunk.
func TestPrefixesOfLayersInChunks(t *testing.T) {
	c := hitting("layer-chunked", sim.PrefixDense)
	c.spec.Prefill.MaxInject = 10
	_, moves, work := c.asks(t)
	spans := []sim.Span{{Query: 10, Prefix: 24}, {Query: 6, Prefix: 34}}
	for i, prefix := range []int64{6, 0, 6, 0} {
		expect(t, "chunk", work[i].Prefill, spans[i%2:i%2+1])
		expect(t, "prefix of a chunk", moves[i].Prefix, prefix)
	}
}

// Of two requests with the same prefix, which is in HBM for the first, the second loads nothing
// that the first has. A prompt whose middle was removed, 60 tokens cut to 40, has not its prefix.
func TestPrefixesAreSharedInHBM(t *testing.T) {
	for _, tc := range []struct {
		texts  [2]uint64
		prompt int
		loads  int64 // of the second prefill, over two layers
	}{{[2]uint64{7, 7}, 40, 0}, {[2]uint64{7, 8}, 40, 12}, {[2]uint64{7, 7}, 60, 12}} {
		c := sharing("chunked", tc.texts)
		c.spec.Selection.On, c.spec.Prefill.MaxPromptTokens, c.arrivals[1].Prompt = false, 40, tc.prompt
		o, _, _ := c.asks(t)
		for _, s := range o.steps[1:] {
			if s.Prefills > 0 {
				expect(t, "loads of the second prefill", s.Loaded, tc.loads)
			}
		}
	}
}

// Decodes get the slots in which another request has the blocks of their prefix: a layer's moves
// say how many, besides its loads, whether all heads are simulated or some. What a chunk takes up
// is none of them: nothing waits for it.
func TestMovesCountJoinedBlocks(t *testing.T) {
	for _, heads := range []string{"full", "sampled"} {
		for _, prefill := range []string{"layer", "chunked"} {
			c := sharing(prefill, [2]uint64{7, 7})
			c.spec.Simulation.Heads, c.spec.Simulation.Groups = heads, 1
			d := &joining{}
			o := c.askedBy(t, d)
			name := heads + ", " + prefill
			if d.chunks != 0 {
				t.Errorf("%s: %d blocks that chunks take up are in a round trip", name, d.chunks)
			}
			if got := o.server.Joined(); prefill == "layer" && (d.decodes < max(1, got) ||
				heads == "full" && d.decodes != got) {
				t.Errorf("%s: moves say that %d blocks were joined, the cache %d", name, d.decodes, got)
			}
		}
	}
}

// joining sums up what moves say was joined, in layers that prefill and in others.
type joining struct {
	metronome
	move            kv.Moves
	chunks, decodes int64
}

func (d *joining) Move(m *kv.Moves) error {
	d.move = *m
	return d.metronome.Move(m)
}

func (d *joining) Compute(layer int, w *sim.Work) error {
	if len(w.Prefill) > 0 {
		d.chunks += d.move.Joined
	} else {
		d.decodes += d.move.Joined
	}
	return d.metronome.Compute(layer, w)
}

// early notes how many blocks a layer's chunks have taken up by when its decodes select.
type early struct {
	metronome
	server *sim.Server
	begun  int64
	layers []int64
}

func (d *early) Begin(s *sim.Step) error {
	d.begun = d.server.Joined()
	return d.metronome.Begin(s)
}

func (d *early) Score(layer int, w *sim.Work) error {
	if len(w.Prefill) > 0 {
		d.layers = append(d.layers, d.server.Joined()-d.begun)
	}
	return d.metronome.Score(layer, w)
}

// A chunk takes up the blocks of its prefix that another request has in HBM before the decodes of
// its layer select: the host does so while the layer before computes.
func TestChunksTakeUpBlocksBeforeDecodesSelect(t *testing.T) {
	c, d := sharing("chunked", [2]uint64{7, 7}), &early{}
	o := &outcome{spy: &spy{Device: d}}
	o.server = c.server(t, o.spy)
	d.server = o.server
	o.run(t, c, o.server.Check)
	expect(t, "blocks taken up by the scores of two layers", d.layers, []int64{6, 12})
}

// A layer's part of a prefix loads while the layer before computes: what computes longer than the
// link needs hides all loads but the first layer's and what the kernel that loads slows it down,
// and a slow link is busy all the time.
func TestPrefixesLoadBesideTheLayerBefore(t *testing.T) {
	m, err := llm.Load("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	run := func(blocks int64, query int) metrics.Timing {
		d, err := cost.NewDevice(profile(t, "h200"), &m, cost.DeviceOptions{LoadEngine: cost.LoadFlash,
			SaveEngine: cost.SaveFlash, Offload: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(&sim.Step{Requests: 1}); err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: query, Prefill: []sim.Span{{Query: query, Prefix: 32}}}
		for layer := range m.Layers {
			if err := d.Move(&kv.Moves{Layer: layer, Prefix: blocks, BlockBytes: 16 << 10}); err != nil {
				t.Fatal(err)
			}
			if err := d.Compute(layer, &w); err != nil {
				t.Fatal(err)
			}
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return timing
	}
	const query = 8192
	fast, each := run(800, query), profile(t, "h200").Load.LayerDelay.SI()*float64(des.Second)
	// A layer's load takes a part of the compute, of which it delays as much.
	part := float64(fast.Busy.H2D) / float64(fast.Elapsed)
	most := 1.01 * (float64(fast.Busy.H2D)/float64(m.Layers) + part*float64(m.Layers)*each)
	if got := float64(fast.Phases.LoadStall); got > most {
		t.Errorf("compute waits %v of %v for loads that it could hide", fast.Phases.LoadStall,
			fast.Busy.H2D)
	}
	slow, none := run(80000, 16), run(0, 16)
	if got, least := slow.Elapsed, slow.Busy.H2D; got < least || got > least+none.Elapsed {
		t.Errorf("a step of %v, of which the link is busy %v, and computation needs %v", got, least,
			none.Elapsed)
	}
}

// With a prefix cache and offloading a prompt's blocks are found once they are in DRAM: at 95 ms,
// when the first request's prefill of 90 ms has been saved, and after it has left. What begins in
// between prefills again.
func TestPrefixesAreFoundInDRAM(t *testing.T) {
	for _, prefill := range []string{"layer", "chunked"} {
		c := offloaded(prefill)
		c.spec.PrefixCache.Mode = sim.PrefixVLLM
		c.arrivals = nil
		for i, at := range []int64{0, 50, 2000, 3000} {
			c.arrivals = append(c.arrivals, sim.Arrival{At: des.Time(at) * ms, Prompt: 40, Output: 2,
				Content: holding(0, text(7, 24), text(uint64(20+i), 16))})
		}
		_, o, _ := c.lives(t, nil)
		hits, ttft := map[int]int{}, map[int]des.Time{}
		for _, r := range o.requests {
			hits[r.ID], ttft[r.ID] = r.Hit, r.FirstToken-r.Arrival
			expect(t, prefill+": of these in DRAM", r.HitDRAM, r.Hit)
		}
		expect(t, prefill+": hits", hits, map[int]int{1: 0, 2: 0, 3: 24, 4: 24})
		stats := o.metrics.Summary().PrefixCache
		expect(t, prefill+": hits by tier", [2]int64{stats.HBM.HitTokens, stats.DRAM.HitTokens},
			[2]int64{0, 48})
		expect(t, prefill+": TTFT of a hit", ttft[3], 42*ms)
	}
}
