package hw

import (
	"sparseserve/sim"
	"sparseserve/sim/des"
)

// GapRow is what a layer takes in its row, over its kernels measured one
// by one: the kernels of a layer follow one another, with a launch's gap between any
// two of them; none finds its code, its arguments or what the one before has written
// in a cache that it left so itself; and where the CPU is hardly ahead the GPU waits
// for it now and then. It depends on what attention is and on the batch.
type GapRow struct {
	Attention string `toml:"attention"`        // dense | sparse | psa; prefill: of a layer with a chunk, whatever its decodes
	Lookup    string `toml:"lookup,omitempty"` // gpu: where the GPU looks lists up
	KVHeads   int    `toml:"kv_heads"`
	Requests  int    `toml:"requests"`
	Figure    `dim:"time" on:"gpu"`
}

// What a GapRow's attention may be.
const (
	GapDense  = "dense"
	GapSparse = "sparse"
	GapPSA    = "psa"
	// GapPrefill is that of a layer with a chunk of a prompt, with one row a number of
	// KV heads.
	GapPrefill = "prefill"
)

// GapOfGPU is Lookup of rows where the GPU looks lists up.
const GapOfGPU = "gpu"

// gaps are those of layers by attention, which has none without rows. Beyond the most
// requests measured they stay.
type gaps struct{ prefill, dense, sparse, psa turns }

func newGaps(p *Profile, m *Model, opts *DeviceOptions) gaps {
	of := func(attention string) turns { return p.gapsOf(attention, "", m.KVHeads) }
	g := gaps{prefill: of(GapPrefill), dense: of(GapDense), sparse: of(GapSparse), psa: of(GapPSA)}
	if opts.GPULookup {
		if t := p.gapsOf(GapSparse, GapOfGPU, m.KVHeads); t.known() {
			g.sparse = t
		}
		if t := p.gapsOf(GapPSA, GapOfGPU, m.KVHeads); t.known() {
			g.psa = t
		}
	}
	return g
}

// gapsOf readies the rows of an attention for a model's KV heads.
func (p *Profile) gapsOf(attention, lookup string, kvHeads int) turns {
	var rows []TurnRow
	for _, r := range p.Gaps {
		if r.Attention == attention && r.Lookup == lookup {
			rows = append(rows, TurnRow{KVHeads: r.KVHeads, Requests: r.Requests, Figure: r.Figure})
		}
	}
	return newTurns(rows, kvHeads)
}

// GapSeconds returns the gap of one layer of some requests, 0 without rows.
func (p *Profile) GapSeconds(attention, lookup string, kvHeads, requests int) float64 {
	t := p.gapsOf(attention, lookup, kvHeads)
	if !t.known() {
		return 0
	}
	return t.of(float64(requests)).seconds
}

// of is the gap of a layer.
func (g *gaps) of(w *sim.Work) des.Time {
	t := &g.dense
	switch {
	case len(w.Prefill) > 0:
		t = &g.prefill
	case len(w.Rounds) > 0:
		t = &g.psa
	case w.Sparse:
		t = &g.sparse
	}
	if !t.known() {
		return 0
	}
	return nanoseconds(t.of(float64(w.Decodes)).seconds)
}
