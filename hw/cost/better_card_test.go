package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// machines draws a card with an engine that runs there.
func machines(t *rapid.T) (gpu, engine string) {
	return rapid.SampledFrom(hw.CardNames()).Draw(t, "card"),
		rapid.SampledFrom(hw.EngineNames()).Draw(t, "engine")
}

// steps times a few steps of drawn work, offloaded.
func steps(t interface{ Fatal(...any) }, gpu, engine string, ch hw.Changes, m *llm.Model,
	opts DeviceOptions, works []sim.Work, moves kv.Moves) (total des.Time) {
	p, err := hw.Load(gpu, engine, ch)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDevice(p, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range works {
		w := &works[i]
		s := sim.Step{Index: int64(i), Start: total, Requests: w.Decodes + len(w.Prefill),
			Sampled: w.Decodes, DRAMBytes: 1 << 34}
		if err := d.Begin(&s); err != nil {
			t.Fatal(err)
		}
		for layer := range m.Layers {
			moves := moves
			moves.Layer = layer
			if w.Sparse {
				if err := d.Score(layer, w); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Move(&moves); err != nil {
				t.Fatal(err)
			}
			if err := d.Compute(layer, w); err != nil {
				t.Fatal(err)
			}
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		total += timing.Elapsed
	}
	return total
}

// A card of which one figure is better is never slower, whatever the work, on any card
// under any engine. The card's clock follows its power, and shorter pauses cool it less: one
// percent is allowed for that. Saves that begin earlier, or that a faster CPU scatters faster, may
// slow more of the loads: by as much as both directions of the link exceed its duplex rate.
func TestLaw11BetterCard(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	m.Layers = 2
	rapid.Check(t, func(t *rapid.T) {
		gpu, engine := machines(t)
		opts := DeviceOptions{Offload: true, LoadEngine: LoadFlash, SaveEngine: SaveFlash,
			SaveBufferBytes: 1 << 28}
		if rapid.Bool().Draw(t, "memcpy") {
			opts.LoadEngine, opts.SaveEngine = LoadMemcpy, SaveMemcpy
		}
		decodes := rapid.IntRange(0, 64).Draw(t, "decodes")
		context := rapid.IntRange(1, 60000).Draw(t, "context")
		works := []sim.Work{{Tokens: decodes, Decodes: decodes, DecodeTokens: int64(decodes * context)}}
		if rapid.Bool().Draw(t, "sparse") {
			works[0].Sparse, works[0].DecodeTokens, works[0].ScoredBlocks = true, int64(decodes*2048),
				int64(decodes*context/32)
		}
		if query := rapid.IntRange(0, 4096).Draw(t, "query"); query > 0 || decodes == 0 {
			works[0].Tokens += query + 1
			works[0].Prefill = []sim.Span{{Query: query + 1,
				Prefix: rapid.IntRange(0, 60000).Draw(t, "prefix")}}
		}
		works = append(works, works[0])
		moves := kv.Moves{Loads: int64(rapid.IntRange(0, 4000).Draw(t, "loads")),
			Saves: int64(rapid.IntRange(0, 4000).Draw(t, "saves")), BlockBytes: 16 << 10}
		factor := rapid.Float64Range(1, 4).Draw(t, "factor")
		c, err := hw.LoadCard(gpu)
		if err != nil {
			t.Fatal(err)
		}
		before := steps(t, gpu, engine, nil, m, opts, works, moves)
		key := rapid.SampledFrom([]string{"peak_fp16", "hbm_bandwidth", "link_h2d", "link_d2h",
			"cpu_speed"}).Draw(t, "key")
		f := map[string]hw.Figure{"peak_fp16": c.GPU.PeakFP16, "hbm_bandwidth": c.GPU.HBMBandwidth,
			"link_h2d": c.Link.H2D, "link_d2h": c.Link.D2H, "cpu_speed": c.CPU.Speed}[key]
		after := steps(t, gpu, engine, hw.Changes{key: f.Value * factor}, m, opts, works, moves)
		up, down := c.Link.H2D.SI(), c.Link.D2H.SI()
		duplex := min(c.Link.DuplexCopy.SI(), c.Link.DuplexKernel.SI())
		loaded := float64(moves.Loads*moves.BlockBytes) * float64(m.Layers*len(works))
		overlap := loaded / up * max(0, (up+down)/duplex-1)
		if after.Seconds() > 1.01*before.Seconds()+overlap {
			t.Fatalf("%s under %s: %g times the %s takes %v in place of %v", gpu, engine, factor, key, after,
				before)
		}
	})
}

// Twice of what binds halves what it binds; twice of what does not changes nothing much.
func TestTwiceOfACard(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	decode := sim.Work{Tokens: 32, Decodes: 32, DecodeTokens: 32 * 8192}
	prefill := sim.Work{Tokens: 8192, Prefill: []sim.Span{{Query: 8192}}}
	for _, gpu := range hw.CardNames() {
		c, err := hw.LoadCard(gpu)
		if err != nil {
			t.Fatal(err)
		}
		twice := func(key string) hw.Changes {
			return hw.Changes{key: 2 * map[string]hw.Figure{"peak_fp16": c.GPU.PeakFP16,
				"hbm_bandwidth": c.GPU.HBMBandwidth, "link_h2d": c.Link.H2D,
				"cpu_speed": c.CPU.Speed}[key].Value}
		}
		flash := DeviceOptions{Offload: true, LoadEngine: LoadFlash, SaveEngine: SaveFlash,
			SaveBufferBytes: 1 << 30}
		loads := kv.Moves{Loads: 200000, BlockBytes: 16 << 10}
		for _, x := range []struct {
			what, engine, key string
			opts              DeviceOptions
			work              sim.Work
			moves             kv.Moves
			low, high         float64 // of the time with twice the figure, as a share
		}{
			{"decode", "vllm-0.15", "hbm_bandwidth", DeviceOptions{}, decode, kv.Moves{}, 0.5, 0.68},
			{"decode", "vllm-0.15", "peak_fp16", DeviceOptions{}, decode, kv.Moves{}, 0.93, 1},
			{"decode", "vllm-0.15", "cpu_speed", DeviceOptions{}, decode, kv.Moves{}, 1, 1},
			{"decode", "vllm-0.5", "cpu_speed", DeviceOptions{}, decode, kv.Moves{}, 0.7, 0.99},
			{"prefill", "vllm-0.15", "peak_fp16", DeviceOptions{}, prefill, kv.Moves{}, 0.5, 0.65},
			{"prefill", "vllm-0.15", "hbm_bandwidth", DeviceOptions{}, prefill, kv.Moves{}, 0.9, 1},
			{"loads", "sparseserve-live", "link_h2d", flash, decode, loads, 0.5, 0.6},
		} {
			work := []sim.Work{x.work}
			before := steps(t, gpu, x.engine, nil, m, x.opts, work, x.moves)
			after := steps(t, gpu, x.engine, twice(x.key), m, x.opts, work, x.moves)
			if share := float64(after) / float64(before); share < x.low || share > x.high {
				t.Errorf("%s under %s, %s: twice the %s takes %.3f of the time, want %g to %g", gpu, x.engine,
					x.what, x.key, share, x.low, x.high)
			}
		}
	}
}
