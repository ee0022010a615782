package calibrate

import "github.com/sparseserve/sparseserve/hw/llm"

// sparseAttention counts, query by query, the keys in blocks and the columns: t = launch + FLOPs /
// (efficiency dense rate), with 4 d FLOPs for each pair of a query and a key.
func (t *machine) sparseAttention(p Point, m *llm.Model) float64 {
	prefix := p.At("prefix_tokens")
	kept, most := 64*p.At("blocks"), p.At("columns")
	if p.At("sink_tokens") > 0 {
		kept, most = p.At("sink_tokens")+p.At("window_tokens"), 0
	}
	var blocks, columns float64 // pairs of a head
	for i := range p.At("query_tokens") {
		row := prefix + i + 1
		in := min(row, kept)
		blocks += float64(in)
		columns += float64(min(row-in, most))
	}
	l := &t.sparsePrefill
	each := float64(4*m.HeadDim*m.QHeads) / t.rateOf(float64(p.At("query_tokens")))
	return l.launch + each*(blocks/l.blocks+columns/l.columns)
}

// sparseIndex is t = launch + bytes / rate: K once a head and the scores of the last 64 queries, or
// Q and K and the causal scores of blocks.
func (t *machine) sparseIndex(p Point, m *llm.Model) float64 {
	q, all := float64(p.At("query_tokens")), float64(p.At("query_tokens")+p.At("prefix_tokens"))
	heads, row := float64(m.QHeads), 2*float64(m.HeadDim)
	l := &t.sparsePrefill
	if p.At("vertical_lines") > 0 {
		return l.lineLaunch + heads*all*(row+4*min(q, 64))/l.lineRate
	}
	scores := (q*(all-q) + q*q/2) / 64 / 64
	return l.blockLaunch + heads*((q+all)*row+4*scores)/l.blockRate
}
