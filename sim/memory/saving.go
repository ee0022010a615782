package memory

import "slices"

// saving is a block that is being saved, with Pool.Late. It is not allocated before the save has
// ended, which makes it visible to others, even if its request has released it.
type saving struct {
	block int32
	key   uint64 // key of its text; 0: unknown
	step  int64  // step that reports the save
}

// Save records that the saves of a step include the leading blocks of a grant.
func (p *Pool) Save(g *Grant, blocks int, step int64) {
	for g.full < blocks {
		b := g.blocks[g.full]
		g.full++
		key, _ := g.chain.Key(g.full * p.blockTokens)
		p.refs[b]++
		p.saves = append(p.saves, saving{b, key, step})
	}
}

// Saved records that the saves of all steps up to the given one have ended. The end of a text is
// lost first.
func (p *Pool) Saved(step int64) {
	n := 0
	for ; n < len(p.saves) && p.saves[n].step <= step; n++ {
		if s := p.saves[n]; s.key != 0 {
			p.put(s.block, s.key)
			p.version++
		}
	}
	for _, s := range slices.Backward(p.saves[:n]) {
		p.giveUp(s.block)
	}
	p.saves = p.saves[:copy(p.saves, p.saves[n:])]
}
