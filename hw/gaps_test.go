package hw

import (
	"math"
	"strings"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

// Each layer has the gap of what its attention is and of its batch, counted to its
// linears; attention without rows has none, and where the GPU looks lists up those
// without its own have the others'.
func TestGaps(t *testing.T) {
	const layers = 2
	gpu := DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: true, SaveBufferBytes: 1 << 30, Microbatch: 16}
	dense := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 8192}
	sparse := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, ScoredBlocks: 1000, Sparse: true}
	psa := sparse
	psa.Rounds = []sim.Round{{Tokens: 2048}, {Tokens: 1024}}
	chunk := sim.Work{Tokens: 2052, Prefill: []sim.Span{{Query: 2048, Prefix: 2048}}, Decodes: 4, DecodeTokens: 4 * 8192}
	three := sparse
	three.Tokens, three.Decodes, three.DecodeTokens = 3, 3, 3*2048
	all := []GapRow{
		{GapDense, "", 32, 4, us(3)}, {GapPrefill, "", 32, 1, us(17)}, {GapPSA, "", 32, 4, us(5)},
		{GapSparse, "", 32, 2, us(6)}, {GapSparse, "", 32, 4, us(8)}, {GapSparse, GapOfGPU, 32, 4, us(11)},
	}
	for name, c := range map[string]struct {
		opts DeviceOptions
		work sim.Work
		rows []GapRow
		want float64 // us a layer
	}{
		"dense":              {DeviceOptions{}, dense, all, 3},
		"sparse":             {DeviceOptions{}, sparse, all, 8},
		"between batches":    {DeviceOptions{}, three, all, 7},
		"PSA":                {DeviceOptions{Microbatch: 16}, psa, all, 5},
		"a chunk":            {DeviceOptions{}, chunk, all, 17},
		"the GPU's lookup":   {gpu, sparse, all, 11},
		"of the GPU no rows": {gpu, psa, all, 5},
		"dense beside it":    {gpu, dense, all, 3},
		"no rows":            {DeviceOptions{}, dense, all[1:], 0},
		"none at all":        {DeviceOptions{}, sparse, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]sim.Timing
			for i := range got {
				p := mustProfile(t, "h200")
				p.Host.CPULayer, p.Host.CPUPSALayer = Figure{}, Figure{}
				if p.Gaps = nil; i == 1 {
					p.Gaps = c.rows
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
			if diff := more - want; diff < -layers || diff > layers || got[1].Elapsed-got[0].Elapsed != more {
				t.Errorf("%v of linears and %v in all, want %v", more, got[1].Elapsed-got[0].Elapsed, want)
			}
		})
	}
}

// Rows that say what no layer is, or the same twice, are refused with their line.
func TestGapsInOrder(t *testing.T) {
	for want, rows := range map[string][]GapRow{
		"gaps[0].attention": {{"full", "", 8, 1, us(1)}},
		"gaps[0].lookup":    {{GapDense, GapOfGPU, 8, 1, us(1)}},
		"gaps[1].lookup":    {{GapSparse, GapOfGPU, 8, 1, us(1)}, {GapSparse, "cpu", 8, 1, us(1)}},
		"gaps[0].kv_heads":  {{GapDense, "", 0, 1, us(1)}},
		"gaps[0].requests":  {{GapDense, "", 8, 0, us(1)}},
		"gaps[2].requests":  {{GapDense, "", 8, 2, us(1)}, {GapPSA, "", 8, 1, us(1)}, {GapDense, "", 8, 2, us(1)}},
		"gaps[1].kv_heads":  {{GapDense, "", 32, 1, us(1)}, {GapDense, "", 8, 1, us(1)}},
		"gaps[0].value":     {{GapDense, "", 8, 1, us(-1)}},
	} {
		p := mustProfile(t, "h200")
		p.Gaps = rows
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ParseProfile("a.toml", data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", rows, err, want)
		}
	}
}
