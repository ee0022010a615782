package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// sparseAttention counts, query by query of whole tiles of 128, the keys in blocks and the
// columns: t = launch + waves of tiles, each its own time and that of its FLOPs, 4 d a pair.
func (t *machine) sparseAttention(p Point, m *hw.Model) float64 {
	prefix := p.At("prefix_tokens")
	kept, most := int64(0), int64(0) // keys in blocks, columns
	if p.Probe == probeAShape {
		kept = p.At("sink_tokens") + p.At("window_tokens")
	} else {
		kept, most = 64*p.At("blocks"), p.At("columns")
	}
	tiles := (p.At("query_tokens") + 127) / 128
	var blocks, columns float64 // pairs of a head
	for i := range tiles * 128 {
		row := prefix + i + 1
		in := min(row, kept)
		blocks += float64(in)
		columns += float64(min(row-in, most))
	}
	ctas, each := float64(tiles)*float64(m.QHeads), float64(4*m.HeadDim*m.QHeads)
	l := &t.sparsePrefill
	busy := ctas*l.tile + each*(blocks/l.blocks+columns/l.columns)
	return t.sparsePrefill.launch + busy*math.Ceil(ctas/fakeSMs)*fakeSMs/ctas
}

// sparseIndex is t = launch + Q and K read / scan + 4 bytes of each choice / choice + steps.
func (t *machine) sparseIndex(p Point, m *hw.Model) float64 {
	q, all := float64(p.At("query_tokens")), float64(p.At("query_tokens")+p.At("prefix_tokens"))
	heads, row, tiles := float64(m.QHeads), 2*float64(m.HeadDim), math.Ceil(q/128)
	l := &t.sparsePrefill
	if p.Probe == probeLineIndex { // K once a head; rows walk through slash lines, a third a tile
		lines, walked := float64(p.At("vertical_lines")), float64(p.At("slash_lines"))
		return l.lineLaunch + walked*l.lineStep +
			heads*(all*row/l.lineScan+tiles*4*(lines+walked/5.5)/l.lineChoice)
	}
	ranked := math.Ceil(max(0, all-max(all-q, float64(64*p.At("blocks")))) / 128)
	scores, pooled := (q*(all-q)+q*q/2)/64/64, heads*q+float64(m.KVHeads)*all
	return l.blockLaunch + pooled*row/l.blockScan + heads*4*scores/l.blockChoice + ranked*l.blockStep
}
