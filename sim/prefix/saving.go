package prefix

// Where blocks are found once they are saved (Pool.Late), a request may give up blocks whose save
// is under way. Nobody gets such a block before the save has ended, and then others find it.

// saving is a block that is given up while it is saved.
type saving struct {
	block int32
	key   uint64 // of its text; 0: not known
	step  int64  // whose saves have it
}

// Saving notes that a table's blocks up to so many are saved by the saves of a step.
func (t *Table) Saving(blocks int, step int64) { t.saving, t.savedBy = max(t.saving, blocks), step }

// hold keeps the blocks of a table that is given up whose saves have not ended, and returns how
// many blocks come before them.
func (p *Pool) hold(t *Table) (before int) {
	from, to := t.full, min(t.saving, len(t.blocks))
	if from >= to {
		return len(t.blocks)
	}
	at := len(p.late)
	for i := to - 1; i >= from; i-- { // the end of a text is lost first
		p.late = append(p.late, saving{block: t.blocks[i], step: t.savedBy})
	}
	for i := from; i < to; i++ {
		if key, ok := t.chain.Key((i + 1) * p.blockTokens); ok {
			p.late[at+to-1-i].key = key
		}
	}
	return from
}

// Saved has the saves of all steps up to one have ended: what requests gave up meanwhile is found.
func (p *Pool) Saved(step int64) {
	n := 0
	for _, s := range p.late {
		if s.step > step {
			p.late[n] = s
			n++
			continue
		}
		if s.key != 0 {
			p.keys[s.block] = s.key
			p.index.insert(p.keys, s.block)
			p.version++
		}
		p.giveUp(s.block)
	}
	p.late = p.late[:n]
}
