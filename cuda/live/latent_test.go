package live_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

const latentSeed, latentBlock = 7, 16

func tinyLatent(topK int) weights.Config {
	c := tiny(llm.Model{Layers: 2, Hidden: 64, QHeads: 2, KVHeads: 1, HeadDim: 40, FFN: 48, Vocab: 61,
		Latent:  llm.Latent{KVRank: 32, QRank: 40, RopeDim: 16, NopeDim: 24, ValueDim: 20},
		Indexer: llm.Indexer{IndexTopK: topK, IndexHeads: 3, IndexHeadDim: 32, IndexKeyBytes: 64}})
	c.MaxContext, c.Eps, c.Rope = 200, 1e-6, weights.Rope{Theta: 10000}
	return c
}

// latentCase is one system on one tiny model.
type latentCase struct {
	topK, hotBuffer int // tokens; hotBuffer 0: all KV in HBM
	plain           bool
	kvBlocks        int64 // of HBM
	preempts        bool
}

var latentCases = map[string]latentCase{
	"dsa":                       {topK: 32, kvBlocks: 60},
	"dsa, plain prefill":        {topK: 32, kvBlocks: 60, plain: true},
	"dsa, short of memory":      {topK: 32, kvBlocks: 11, preempts: true},
	"dense":                     {topK: 208, kvBlocks: 60},
	"hisparse":                  {topK: 32, hotBuffer: 48, kvBlocks: 60},
	"hisparse, plain":           {topK: 32, hotBuffer: 64, kvBlocks: 60, plain: true},
	"hisparse, short of memory": {topK: 32, hotBuffer: 48, kvBlocks: 11, preempts: true},
	"hisparse, all in slots":    {topK: 32, hotBuffer: 208, kvBlocks: 90},
}

func (c latentCase) spec() sim.Spec {
	s := sim.Spec{
		Selection: sim.SelectionSpec{On: true, Policy: "indexer", BudgetTokens: c.topK,
			RecentBlocks: 1}, BlockTokens: latentBlock,
		Offload: sim.OffloadSpec{Load: "flash", Save: "flash", Eviction: "lru", Pool: "unified",
			SaveBufferMiB: 1, WorkingSetSteps: 4, HotBuffer: c.hotBuffer, On: c.hotBuffer > 0},
		Utilisation: 0.9,
		DRAMGiB:     0.05, Scheduler: "vllm", MaxRequests: 8, MaxTokens: 48, Watermark: 0.01,
		Prefill:    sim.PrefillSpec{Split: "chunked", ChunkTokens: 48, OverLength: "truncate"},
		Simulation: sim.SimulationSpec{Heads: "full"},
	}
	if c.plain {
		s.Prefill.Split, s.MaxTokens = "plain", 200
	}
	return s
}

type latentPlace struct{ id, position, layer int }

// latentRun is what a live latentRun left.
type latentRun struct {
	tokens   map[int][]int32
	logits   map[int]map[int][]cuda.Half // by request and position
	chosen   map[latentPlace][]int32     // the newest computation's
	decoded  map[int][]latentPlace       // by request: decodes in order, by layer
	misses   map[latentPlace]int
	preempts int
	steps    []metrics.Step
	counters live.Counters
}

func (r *latentRun) Request(*metrics.Request) error { return nil }
func (r *latentRun) Gap(des.Time)                   {}
func (r *latentRun) Step(s *metrics.Step) error     { r.steps = append(r.steps, *s); return nil }

type latentLoad struct{ next int }

var latentLengths = [][2]int{{33, 20}, {1, 5}, {130, 18}, {64, 20}, {97, 3}, {16, 33}, {47, 17}}

func (w *latentLoad) Next() (sim.Arrival, bool, error) {
	if w.next == len(latentLengths) {
		return sim.Arrival{}, false, nil
	}
	w.next++
	return sim.Arrival{At: des.Time(w.next) * 300 * des.Microsecond,
		Prompt: latentLengths[w.next-1][0], Output: latentLengths[w.next-1][1]}, true, nil
}

// serve runs the latentCase's latentLoad on a machine.
func (c latentCase) serve(t *testing.T, m cuda.Machine) *latentRun {
	t.Helper()
	r := &latentRun{tokens: map[int][]int32{}, logits: map[int]map[int][]cuda.Half{},
		chosen: map[latentPlace][]int32{}, decoded: map[int][]latentPlace{},
		misses: map[latentPlace]int{}}
	shape, spec := tinyLatent(c.topK), c.spec()
	geo := kv.Geometry{Layers: shape.Layers, KVHeads: 1, BlockTokens: latentBlock,
		BlockBytes: int64(2 * latentBlock * shape.LatentDim()),
		MetaBytes:  int64(2 * latentBlock * shape.IndexHeadDim)}
	source, err := weights.NewRandom(shape, latentSeed)
	if err != nil {
		t.Fatal(err)
	}
	kvBytes := c.kvBlocks * int64(shape.Layers) * (geo.BlockBytes + geo.MetaBytes)
	device, err := live.New(m, live.Config{Spec: &spec, Geometry: geo, Weights: source,
		Seed: latentSeed, KVBytes: kvBytes, Longest: shape.MaxContext,
		Finished: func(id int, tokens []int32) { r.tokens[id] = slices.Clone(tokens) },
		Logits: func(id, position int, logits []cuda.Half) {
			if r.logits[id] == nil {
				r.logits[id] = map[int][]cuda.Half{}
			}
			r.logits[id][position] = slices.Clone(logits)
		},
		ChosenTokens: func(id, position, layer int, tokens []int32, misses int) {
			at := latentPlace{id, position, layer}
			r.chosen[at] = slices.Clone(tokens)
			if misses >= 0 {
				r.misses[at] = misses
				r.decoded[id] = append(r.decoded[id], at)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := sim.NewServer(sim.Config{Spec: spec, Seed: 3, Geometry: geo,
		Model: sim.Model{Layers: shape.Layers, KVHeads: 1,
			MaxContext: shape.MaxContext},
		HBMBytes: kvBytes,
		Device:   device, Addressed: true, DeviceSelects: true, Swapped: device.Swapped})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := server.Run(context.Background(), &latentLoad{}, r)
	if err != nil {
		t.Fatal(err)
	}
	sum := metrics.Summary()
	r.preempts = int(sum.Preempted)
	if err := device.Begin(&sim.Step{Dropped: server.Dropped()}); err != nil {
		t.Fatal(err)
	}
	r.counters = device.Counters()
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	if len(r.tokens) != len(latentLengths) {
		t.Fatalf("%d requests finished, want %d", len(r.tokens), len(latentLengths))
	}
	return r
}

// check compares every emitted token's logits with the float64 model that attends to the same
// tokens, and every selection with the scores of that model.
func (c latentCase) check(t *testing.T, r *latentRun) {
	t.Helper()
	if c.preempts && r.preempts == 0 {
		t.Errorf("nothing was preempted; the case is meant to")
	}
	model := latentReference(t, tinyLatent(c.topK))
	judged := 0
	for id, tokens := range r.tokens {
		ids := make([]int, len(tokens)-1)
		for i := range ids {
			ids[i] = int(tokens[i])
		}
		logits := model.Forward(ids, func(position, layer int, scores []float64) []int32 {
			list := r.chosen[latentPlace{id, position, layer}]
			if err := isTokenTopK(list, scores, c.topK); err != nil {
				t.Fatalf("request %d, position %d, layer %d: %v", id, position, layer, err)
			}
			return list
		})
		for position, got := range r.logits[id] {
			judged++
			if err := near(got, logits[position]); err != nil {
				t.Fatalf("request %d, position %d: %v", id, position, err)
			}
			if want := reference.Argmax(cuda.Floats(got)); want != int(tokens[position+1]) {
				t.Fatalf("request %d, position %d: token %d follows, the logits say %d", id, position,
					tokens[position+1], want)
			}
		}
	}
	want := 0
	for _, l := range latentLengths {
		want += l[1]
	}
	if judged < want {
		t.Errorf("%d tokens judged, %d emitted", judged, want)
	}
}

// isTokenTopK reports whether a list has the k best scores, except for swaps within fp16 rounding.
func isTokenTopK(list []int32, scores []float64, k int) error {
	if want := min(k, len(scores)); len(list) != want {
		return fmt.Errorf("%d tokens selected of %d, want %d", len(list), len(scores), want)
	}
	largest, in := 0.0, map[int32]bool{}
	for _, t := range list {
		in[t] = true
	}
	lowest, best := math.Inf(1), math.Inf(-1)
	for t, s := range scores {
		largest = max(largest, math.Abs(s))
		if in[int32(t)] {
			lowest = min(lowest, s)
		} else {
			best = max(best, s)
		}
	}
	if len(in) != len(list) || best > lowest+0.02*largest {
		return fmt.Errorf("a token of score %g is not selected, one of %g is", best, lowest)
	}
	return nil
}

// Whatever the system, every emitted token's logits equal the float64 model's, of decodes and
// prefills, after any preemption, and with dense attention where the selection covers the context.
func TestLatentLogitsMatchTheReference(t *testing.T) {
	for name, c := range latentCases {
		t.Run(name, func(t *testing.T) {
			m := emulator.New(emulator.Config{Late: true, Seed: uint64(len(name))})
			defer m.Close()
			c.check(t, c.serve(t, m))
			if d, h := m.Held(); d != 0 || h != 0 {
				t.Errorf("%d bytes of device memory and %d of pinned memory are left", d, h)
			}
		})
	}
}

// Hot buffers change where rows are and nothing else: tokens, selections and logits equal those
// with all KV in HBM bit for bit.
func TestBuffersChangeNoLogits(t *testing.T) {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	latentAlike(t, m, func(got, want []cuda.Half) error {
		if !slices.Equal(got, want) {
			return errors.New("logits differ")
		}
		return nil
	})
}

// latentAlike holds hot buffers against all KV in HBM.
func latentAlike(t *testing.T, m cuda.Machine, same func(got, want []cuda.Half) error) {
	want := latentCases["dsa"].serve(t, m)
	for _, name := range []string{"hisparse", "hisparse, all in slots"} {
		got := latentCases[name].serve(t, m)
		for id, tokens := range want.tokens {
			if !slices.Equal(got.tokens[id], tokens) {
				t.Fatalf("%s: request %d: tokens %v, want %v", name, id, got.tokens[id], tokens)
			}
			for position, logits := range want.logits[id] {
				if err := same(got.logits[id][position], logits); err != nil {
					t.Fatalf("%s: request %d, position %d: %v", name, id, position, err)
				}
			}
		}
	}
}

// Misses equal a buffer's that keeps times of use, in every step and layer, by the kernel's count;
// the device's sum, and the server's records of blocks, agree with them.
func TestMissesAreThoseOfLRU(t *testing.T) {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	missesAreLRU(t, m)
}

func missesAreLRU(t *testing.T, m cuda.Machine) {
	for _, name := range []string{"hisparse", "hisparse, plain", "hisparse, all in slots"} {
		c := latentCases[name]
		r := c.serve(t, m)
		var all, selected int64
		for id, places := range r.decoded {
			buffers := map[int]*reference.HotBuffer{}
			for _, at := range places {
				b, list := buffers[at.layer], r.chosen[at]
				if b == nil {
					b = reference.NewHotBuffer(c.hotBuffer, 0)
					if prompt := at.position; prompt <= c.hotBuffer {
						b = reference.NewHotBuffer(c.hotBuffer, prompt)
					}
					buffers[at.layer] = b
				}
				want := 0
				if context := at.position + 1; context <= c.hotBuffer {
					b.Token[at.position] = int32(at.position)
				} else {
					_, _, loads := b.Swap(list, int32(at.position))
					want = len(loads)
				}
				if r.misses[at] != want {
					t.Fatalf("%s: request %d, position %d, layer %d: %d misses, LRU has %d", name, id,
						at.position, at.layer, r.misses[at], want)
				}
				all, selected = all+int64(want), selected+int64(len(list))
			}
		}
		if all != r.counters.Loaded || selected != r.counters.Selected ||
			(all == 0) != (c.hotBuffer > 200) {
			t.Errorf("%s: %d rows missed of %d selected; the device counts %d of %d", name, all, selected,
				r.counters.Loaded, r.counters.Selected)
		}
		loaded := int64(0)
		for i := range r.steps {
			loaded += r.steps[i].Loaded
		}
		if loaded < all/latentBlock || loaded > all/latentBlock+int64(len(r.steps)) {
			t.Errorf("%s: records have %d blocks loaded, of %d rows", name, loaded, all)
		}
	}
}

// latentReference is a random model in float64, stored as the GPU stores it.
func latentReference(t *testing.T, c weights.Config) *latentModel {
	source, err := weights.NewRandom(c, latentSeed)
	if err != nil {
		t.Fatal(err)
	}
	m := &latentModel{Heads: c.QHeads, Rank: c.KVRank, Rope: c.RopeDim, Nope: c.NopeDim,
		Value: c.ValueDim, IndexHeads: c.IndexHeads, IndexDim: c.IndexHeadDim, TopK: c.IndexTopK,
		Body: reference.Body{Eps: float64(float32(c.Eps)), InvFreq: c.InvFreq(),
			Round: cuda.Rounded},
		Layers: make([]latentLayer, c.Layers)}
	for _, of := range c.Tensors() {
		values := make([]cuda.Half, of.Values(c))
		if err := source.Read(of, values); err != nil {
			t.Fatal(err)
		}
		l := &m.Layers[of.Layer]
		*[weights.Kinds]*[]float64{
			weights.Embed: &m.Embed, weights.Norm: &m.Norm, weights.Head: &m.Head,
			weights.AttnNorm: &l.AttnNorm, weights.QDown: &l.QDown, weights.QNorm: &l.QNorm,
			weights.QUp: &l.QUp, weights.KVDown: &l.KVDown, weights.KVNorm: &l.KVNorm,
			weights.KeyUp: &l.KeyUp, weights.ValueUp: &l.ValueUp, weights.O: &l.O,
			weights.IndexQ: &l.IndexQ, weights.IndexKey: &l.IndexKey,
			weights.IndexNorm: &l.IndexNorm, weights.IndexBias: &l.IndexBias,
			weights.IndexWeight: &l.IndexWeight, weights.MLPNorm: &l.MLPNorm,
			weights.GateUp: &l.GateUp, weights.Down: &l.Down,
		}[of.Kind] = cuda.Floats(values)
	}
	return m
}
