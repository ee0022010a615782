package cost

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// varied are steps of many kinds on devices of many kinds, which show every figure of a
// profile somewhere.
func varied(t *testing.T, p *hw.Profile) (times []des.Time) {
	for _, name := range []string{"llama2-7b", "llama3-8b"} {
		for _, opts := range []DeviceOptions{
			{},
			{TopP: true},
			{LoadEngine: LoadMemcpy, SaveEngine: SaveMemcpy, Offload: true, SaveBufferBytes: 1 << 34},
			{LoadEngine: LoadMemcpy, SaveEngine: SaveMemcpy, Offload: true, Pipelined: true,
				SaveBufferBytes: 1 << 30},
			{LoadEngine: LoadMemcpy, SaveEngine: SaveGPU, Offload: true},
			{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: p.GPULookup(),
				SaveBufferBytes: 1 << 30},
			{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: p.GPULookup(),
				Pipelined: true, ScatterThreads: 2},
			{LoadEngine: LoadSwap, SaveEngine: SaveFlash, Offload: true, HotSlots: 4096, BlockTokens: 32},
		} {
			times = append(times, stepsOf(t, p, mustModel(t, name), opts)...)
		}
	}
	for _, name := range []string{"mixtral-8x7b", "deepseek-v3.2"} { // experts, latents
		times = append(times, stepsOf(t, p, mustModel(t, name), DeviceOptions{})...)
	}
	for _, name := range []string{"llama2-7b", "llama3-8b"} {
		shard, err := mustModel(t, name).Shard(2)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, stepsOf(t, p, &shard, DeviceOptions{})...)
	}
	return times
}

// stepsOf runs a prompt's chunks, decodes that load, and decodes after a rest.
func stepsOf(t *testing.T, p *hw.Profile, m *llm.Model, opts DeviceOptions) (times []des.Time) {
	d, err := NewDevice(p, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	block, now, prefix := m.Geometry(32).BlockBytes, des.Time(0), int64(0)
	step := func(s sim.Step, w sim.Work, loads, saves int64) {
		s.Index, s.Start, s.DRAMBytes = int64(len(times)), now, 3<<30
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(d.Begin(&s))
		for layer := range m.Layers {
			if w.Sparse {
				must(d.Score(layer, &w))
			}
			moves := kv.Moves{Layer: layer, Loads: loads, Saves: saves, BlockBytes: block,
				InRounds: len(w.Rounds) > 0, Prefix: prefix}
			if opts.LoadEngine == "" {
				moves.Loads, moves.Saves, moves.Prefix = 0, 0, 0
			}
			must(d.Move(&moves))
			must(d.Compute(layer, &w))
		}
		timing, err := d.Finish()
		must(err)
		times, now = append(times, timing.Elapsed), now+timing.Elapsed
	}
	for chunk := range 4 {
		step(sim.Step{Requests: 1, Sampled: chunk / 3},
			sim.Work{Tokens: 2048 - 40*chunk,
				Prefill: []sim.Span{{Query: 2048 - 40*chunk, Prefix: 2048 * chunk}}}, 0, int64(64*m.KVHeads))
	}
	prefix = 64
	step(sim.Step{Requests: 1},
		sim.Work{Tokens: 300, Prefill: []sim.Span{{Query: 300, Prefix: 1024}}}, 0, 0)
	prefix = 0
	for _, h := range []pattern.Head{{Kind: pattern.VerticalSlash, A: 100, B: 800},
		{Kind: pattern.BlockSparse, A: 10}} {
		step(sim.Step{Requests: 1},
			sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048, Prefix: 4096}},
				Patterns: []pattern.Group{{Head: h, Heads: float64(m.QHeads)}}}, 0, 0)
	}
	for _, n := range []int{1, 6, 40} {
		tokens := int64(n) * (2048 + 320*int64(n-1))
		w := sim.Work{Tokens: n, Decodes: n, DecodeTokens: tokens}
		step(sim.Step{Requests: n, Sampled: n}, w, 0, 0)
		w.RereadTokens = int64(n-1) * 2000
		step(sim.Step{Requests: n, Sampled: n}, w, 0, 0)
		w = sim.Work{Tokens: n, Decodes: n, DecodeTokens: int64(n) * 2048, Sparse: true, Swapped: n,
			ScoredBlocks: tokens / 32}
		if opts.Pipelined {
			for i := range 8 {
				w.Rounds = append(w.Rounds,
					sim.Round{Tokens: int64(n) * 256 / int64(1+i*i), Loads: int64(1 + 9*(i%2)*n)})
			}
			w.DecodeTokens = 0
			for _, r := range w.Rounds {
				w.DecodeTokens += r.Tokens
			}
		}
		if opts.LoadEngine == "" {
			for i := range w.Rounds {
				w.Rounds[i].Loads = 0
			}
		}
		step(sim.Step{Requests: n, Sampled: n}, w, 200, 2000)
		step(sim.Step{Requests: n, Sampled: n}, w, 20, 3)
	}
	return times
}

// TestEachPartMovesSomePrice removes every part of the cost model from the profile that
// has them all: what moves no price is not part of it.
func TestEachPartMovesSomePrice(t *testing.T) {
	whole := mustProfile(t, "h200")
	served, err := hw.Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	// what this project's loop does not have: sorted logits, experts, latents that are selected
	whole.Sampling, whole.Experts, whole.Selected = served.Sampling, served.Experts, served.Selected
	for _, g := range served.Grids {
		if g.Kernel == hw.GridExpert || g.Kernel == hw.GridSelected ||
			g.Kernel == hw.GridSelectedPrefill {
			whole.Grids = append(slices.Clone(whole.Grids), g)
		}
	}
	want := varied(t, whole)
	for _, part := range hw.Parts() {
		without, err := whole.Without(part.Name)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(varied(t, without), want) {
			t.Errorf("without %s every price is as it was", part.Name)
		}
	}
	if !slices.Equal(varied(t, whole), want) {
		t.Error("the profile itself was changed")
	}
	if _, err := whole.Without("magic"); err == nil || !strings.Contains(err.Error(), `"magic"`) {
		t.Errorf("unknown part: %v", err)
	}
}

// outside are figures that belong to no part: what bounds all prices, what only describes how
// far was measured, and what no step is priced by.
var outside = []string{"gpu.", "link.nominal", "interconnect.nominal", "cpu.", "front_end.",
	"static."}

// TestEveryFigureBelongsToAPart holds the table of parts to the profile's schema.
func TestEveryFigureBelongsToAPart(t *testing.T) {
	known := map[string]bool{}
	for _, part := range hw.Parts() {
		for _, key := range part.Keys {
			known[key] = true
		}
	}
	for _, key := range schemaKeys(reflect.TypeFor[hw.Profile](), "") {
		in := slices.ContainsFunc(outside,
			func(o string) bool {
				return key == o || strings.HasSuffix(o, ".") &&
					strings.HasPrefix(key, o)
			})
		for k := range known {
			in = in || key == k || strings.HasPrefix(key, k+".")
		}
		if !in {
			t.Errorf("%s belongs to no part of the cost model", key)
		}
	}
}

// schemaKeys lists the keys of all figures that a profile may have; a table of rows counts
// once for each figure of a row.
func schemaKeys(v reflect.Type, path string) (keys []string) {
	for i := range v.NumField() {
		field := v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		at := tomlfile.Join(path, name)
		if field.Anonymous {
			at = path
		}
		of := field.Type
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		switch {
		case of == reflect.TypeFor[hw.Figure]():
			keys = append(keys, at)
		case of.Kind() == reflect.Struct:
			keys = append(keys, schemaKeys(of, at)...)
		}
	}
	return keys
}

// mostKeys are the figure keys that the profile of a calibrated card may use by what it serves:
// dense prefill and all decodes on one GPU; and beyond that prefill by patterns, chunks over small
// KV blocks, several GPUs, FP8, hot buffers, prefixes that load while a layer is computed, and
// prefixes that decodes share.
var mostKeys = []struct {
	prefixes []string // of keys; none: all others
	most     int
}{
	{[]string{"sparse_prefill."}, 5},
	{[]string{"paged_prefill.copy"}, 1},
	{[]string{"interconnect.", "grids"}, 2},
	{[]string{"gpu.peak_fp8"}, 1},
	{[]string{"load.swap."}, 4},
	{[]string{"load.layer_delay"}, 1},
	{[]string{"dense_decode.l2_rate"}, 1},
	{nil, 48},
}

// take counts the keys that begin with one of the prefixes, and takes them away.
func take(keys map[string]int, prefixes []string) (n int) {
	for key := range keys {
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes,
			func(p string) bool { return strings.HasPrefix(key, p) }) {
			delete(keys, key)
			n++
		}
	}
	return n
}

// TestProfilesHaveBoundedKeys counts what a reader of a calibrated card's profile has to know.
func TestProfilesHaveBoundedKeys(t *testing.T) {
	keys := map[string]int{}
	countFigures(reflect.ValueOf(*mustProfile(t, "h200")), "", keys)
	numbers := 0
	for _, n := range keys {
		numbers += n
	}
	t.Logf("%d figure keys, %d numbers, %d concepts", len(keys), numbers, len(concepts()))
	for _, m := range mostKeys {
		if n := take(keys, m.prefixes); n > m.most || n == 0 {
			t.Errorf("%d figure keys of %v, want some and at most %d", n, m.prefixes, m.most)
		}
	}
	if n := len(concepts()); n > 12 {
		t.Errorf("%d concepts, want at most 12", n)
	}
}

func concepts() (names []string) {
	for _, part := range hw.Parts() {
		if !slices.Contains(names, part.Concept) {
			names = append(names, part.Concept)
		}
	}
	return names
}

// countFigures counts the figures that are set, by key.
func countFigures(v reflect.Value, path string, keys map[string]int) {
	if f, ok := v.Interface().(hw.Figure); ok {
		if f.Set() {
			keys[path]++
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			countFigures(v.Index(i), path, keys)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("toml"), ",")
			at := tomlfile.Join(path, name)
			if v.Type().Field(i).Anonymous {
				at = path
			}
			countFigures(v.Field(i), at, keys)
		}
	}
}
