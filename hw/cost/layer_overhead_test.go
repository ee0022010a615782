package cost

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

func overhead(attention, lookup string, chunk bool, f hw.Figure) hw.OverheadRow {
	return hw.OverheadRow{Attention: attention, Lookup: lookup, Chunk: chunk, Figure: f}
}

// Each layer has the overhead of its kind, counted to its linears; a kind without a row has none,
// a layer that only prefills that of dense attention, and one that does both what a chunk adds.
// Where the GPU looks lists up its row has the lookup too, and layers of dense attention pay for as
// much.
func TestLayerOverhead(t *testing.T) {
	const layers = 2
	gpu := DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: true,
		SaveBufferBytes: 1 << 30}
	dense := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 8192}
	sparse := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, ScoredBlocks: 1000, Sparse: true}
	psa := sparse
	psa.Rounds = []sim.Round{{Tokens: 2048}, {Tokens: 1024}}
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048, Prefix: 2048}}}
	mixed := chunk
	mixed.Tokens, mixed.Decodes, mixed.DecodeTokens = 2052, 4, 4*8192
	selecting := mixed
	selecting.DecodeTokens, selecting.ScoredBlocks, selecting.Sparse = 4*2048, 1000, true
	rounds := selecting
	rounds.Rounds = psa.Rounds
	all := []hw.OverheadRow{overhead(hw.OverheadDense, "", false, us(3)),
		overhead(hw.OverheadPSA, "", false, us(5)), overhead(hw.OverheadSparse, "", false, us(8)),
		overhead(hw.OverheadSparse, hw.OverheadGPULookup, false, us(11))}
	chunks := append(all[:4:4], overhead(hw.OverheadDense, "", true, us(7)),
		overhead(hw.OverheadSparse, "", true, us(15)))
	for name, c := range map[string]struct {
		opts DeviceOptions
		work sim.Work
		rows []hw.OverheadRow
		want float64 // us a layer
	}{
		"dense":              {DeviceOptions{}, dense, all, 3},
		"sparse":             {DeviceOptions{}, sparse, all, 8},
		"PSA":                {DeviceOptions{}, psa, all, 5},
		"a chunk":            {DeviceOptions{}, chunk, chunks, 3},
		"a chunk, the GPU's": {gpu, chunk, chunks, 3},
		"chunk, dense":       {DeviceOptions{}, mixed, chunks, 3 + 7},
		"chunk, sparse":      {DeviceOptions{}, selecting, chunks, 8 + 15},
		"chunk, PSA":         {DeviceOptions{}, rounds, chunks, 5 + 15},
		"chunk, the GPU's":   {gpu, selecting, chunks, 11 + 15},
		"chunk and decodes":  {DeviceOptions{}, mixed, all, 3},
		"the GPU's lookup":   {gpu, sparse, all, 11},
		"of the GPU no rows": {gpu, psa, all, 5},
		"dense of both":      {gpu, dense, all, 3 + 11 - 8},
		"no rows":            {DeviceOptions{}, dense, all[1:], 0},
		"none at all":        {DeviceOptions{}, sparse, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]metrics.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				p.LayerOverhead = []hw.OverheadRow{
					overhead(hw.OverheadSparse, hw.OverheadGPULookup, false, ns(1e-6))}
				if i == 1 {
					p.LayerOverhead = c.rows
				}
				d, err := NewDevice(p, mustModel(t, "lwm-7b"), c.opts)
				if err != nil {
					t.Fatal(err)
				}
				w := c.work
				got[i] = runStep(t, d, &sim.Step{}, layers, &w, 0, 0)
			}
			want := layers * des.Time(math.Round(c.want*1e3))
			more := got[1].Phases.Linears - got[0].Phases.Linears
			if diff := more - want; diff < -2*layers || diff > 2*layers ||
				got[1].Elapsed-got[0].Elapsed != more {
				t.Errorf("%v of linears and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, want)
			}
		})
	}
}

// Rows of what no layer is, or the same twice, are refused with their line.
func TestLayerOverheadIsChecked(t *testing.T) {
	for want, rows := range map[string][]hw.OverheadRow{
		"layer_overhead[0].attention": {overhead("full", "", false, us(1))},
		"layer_overhead[0].lookup":    {overhead(hw.OverheadDense, hw.OverheadGPULookup, false, us(1))},
		"layer_overhead[1].lookup": {overhead(hw.OverheadSparse, hw.OverheadGPULookup, false, us(1)),
			overhead(hw.OverheadSparse, "cpu", false, us(1))},
		"layer_overhead[2].attention": {overhead(hw.OverheadDense, "", false, us(1)),
			overhead(hw.OverheadPSA, "", false, us(1)), overhead(hw.OverheadDense, "", false, us(1))},
		"layer_overhead[0].chunk": {overhead(hw.OverheadPSA, "", true, us(1))},
		"layer_overhead[1].chunk": {overhead(hw.OverheadSparse, "", true, us(1)),
			overhead(hw.OverheadSparse, hw.OverheadGPULookup, true, us(1))},
		"layer_overhead[0].value": {overhead(hw.OverheadDense, "", false, us(-1))},
	} {
		p := mustProfile(t, "h200")
		p.LayerOverhead = rows
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", rows, err, want)
		}
	}
}

// A card on which it was not measured does not look up for nothing.
func TestGPULookupNeedsItsOverhead(t *testing.T) {
	p, m := mustProfile(t, "a100-80gb"), mustModel(t, "lwm-7b")
	_, err := NewDevice(p, m,
		DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: true})
	if err == nil || !strings.Contains(
		err.Error(), "a100-80gb has no overhead of layers whose lists the GPU looks up") {
		t.Errorf("error %v", err)
	}
}
