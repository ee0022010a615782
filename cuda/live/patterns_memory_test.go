package live_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// allocating counts allocations of device memory.
type allocating struct {
	*emulator.Machine
	n int
}

func (m *allocating) DeviceAlloc(bytes int64) (cuda.Ptr, error) {
	m.n++
	return m.Machine.DeviceAlloc(bytes)
}

// The memory of indices is allocated beforehand: steps allocate no more than with dense prefill.
func TestIndicesAllocateNothingInSteps(t *testing.T) {
	plans := []string{"layer-chunked", "chunked", "layer"}
	if testing.Short() {
		plans = plans[:1]
	}
	for _, plan := range plans {
		var inSteps [2]int
		for i := range inSteps {
			c := *cases()["sparse prefill/"+plan+", one of each"]
			if i == 0 {
				c.patterns = nil
			}
			of, err := c.onDevice()
			if err != nil {
				t.Fatal(err)
			}
			of.Longest, of.FindsLines = 304, false
			of.Projected = func(int, []cuda.Half) {} // neither launches ahead, as sparse prefill does not
			m := &allocating{Machine: emulator.New(emulator.Config{})}
			device, err := live.New(m, of)
			if err != nil {
				t.Fatal(err)
			}
			before := m.n
			model := c.shape.Model
			modelled, err := modelledDevice(&c.spec, &model)
			if err != nil {
				t.Fatal(err)
			}
			cfg := c.server(&model)
			cfg.Prefill = nil // one time for both, and so the same steps
			cfg.Addressed, cfg.Device = true, &modelClock{Real: device, Model: modelled}
			server, err := sim.NewServer(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := server.Run(t.Context(), c.workload(), &counted{}); err != nil {
				t.Fatal(err)
			}
			inSteps[i] = m.n - before
			if err := device.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if inSteps[0] != inSteps[1] {
			t.Errorf("%s: steps allocate %d times with sparse prefill, %d without", plan,
				inSteps[1], inSteps[0])
		}
	}
}

// Lines that are drawn have every row that is long enough attend to as many keys as its price
// assumes, within 5 %: the last run has fewer lines.
func TestDrawnLinesKeepWhatIsPriced(t *testing.T) {
	for _, h := range []pattern.Head{{Kind: pattern.VerticalSlash, A: 1000, B: 6096},
		{Kind: pattern.VerticalSlash, A: 30, B: 800},
		{Kind: pattern.VerticalSlash, A: 100, B: 800}, {Kind: pattern.VerticalSlash, A: 500, B: 700}} {
		const prefix, tokens = 60_000, 1024
		v, s := h.Lines(prefix + tokens)
		kept, want := 0, 0.0
		for i := range tokens {
			blocks, columns, counts := reference.LinesOfTile(v, s, i/128, tokens, prefix)
			kept += len(keysOf(blocks, columns, counts[:], i/64%2, prefix+i))
			want += h.Kept(float64(prefix + i))
		}
		if got := float64(kept); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%v: %.0f keys a row, priced are %.0f", h, got/tokens, want/tokens)
		}
	}
}

// Heads, layers and shapes without kernels are refused before anything is allocated.
func TestPatternsWithoutKernels(t *testing.T) {
	head := pattern.Head{Kind: pattern.VerticalSlash, A: 40, B: 50}
	four := []pattern.Head{head, head, head, head}
	with := func(h pattern.Head) []pattern.Head { return []pattern.Head{head, head, h, head} }
	c := cases()["sparse prefill/chunked, everything"]
	small := c.shape
	small.HeadDim = 64
	for _, x := range []struct {
		shape weights.Config
		heads [][]pattern.Head
		want  string
	}{
		{small, [][]pattern.Head{four, four}, "heads of 64 values"},
		{c.shape, [][]pattern.Head{four}, "patterns of 1 layers, the model has 2"},
		{c.shape, [][]pattern.Head{four, {head}},
			"layer 1: patterns of 1 heads, the model has 4"},
		{c.shape, [][]pattern.Head{four, with(pattern.Head{Kind: pattern.Strided, A: 1, B: 2})},
			"layer 1, head 2: strided (1, 2) has no kernel"},
		{c.shape, [][]pattern.Head{with(pattern.Head{Kind: pattern.BlockSparse, A: 5000}), four},
			"layer 0, head 2: block-sparse (5000): the kernel chooses at most 4096 blocks"},
	} {
		source, err := weights.NewRandom(x.shape, 7)
		if err != nil {
			t.Fatal(err)
		}
		model := x.shape.Model
		m := emulator.New(emulator.Config{})
		cfg := live.Config{
			Spec:     &c.spec,
			Geometry: model.Geometry(c.spec.BlockTokens),
			Weights:  source,
			KVBytes:  c.kvBytes,
			Patterns: x.heads,
		}
		_, err = live.New(m, cfg)
		if fits := live.Fits(m, cfg, live.Load{}, 0); err == nil || fits == nil ||
			!strings.Contains(err.Error(), x.want) ||
			fits.Error() != err.Error() {
			t.Errorf("%v, and %v; want %q", err, fits, x.want)
		}
		if d, h := m.Held(); d != 0 || h != 0 {
			t.Errorf("%s: %d and %d bytes are held", x.want, d, h)
		}
	}
}
