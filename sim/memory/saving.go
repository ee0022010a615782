package memory

// With Pool.Late, blocks become visible once they are saved (Save, Saved). A request may release
// blocks during their save. Such a block is not allocated before the save has ended; then it
// becomes visible to others.

// saving is a block that was released during its save.
type saving struct {
	block int32
	key   uint64 // key of its text; 0: unknown
	step  int64  // step whose saves include it
}

// save is the save of a table's leading blocks, which others find once it has ended.
type save struct {
	table  *Table
	turn   uint32 // Table.turn when the save began
	blocks int
	step   int64 // step that reports it
}

// Save records that the saves of a step include the leading blocks of a table, which enter the
// index with Saved.
func (p *Pool) Save(t *Table, blocks int, step int64) {
	t.saving, t.savedBy = max(t.saving, blocks), step
	p.pending = append(p.pending, save{t, t.turn, blocks, step})
}

// hold keeps the blocks of a released table whose saves have not ended. It returns the number of
// blocks before them.
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

// Saved records that the saves of all steps up to the given one have ended. Blocks that were
// released during these saves become visible.
func (p *Pool) Saved(step int64) {
	n := 0
	for ; n < len(p.pending) && p.pending[n].step <= step; n++ {
		for s := &p.pending[n]; s.table.turn == s.turn && s.table.full < s.blocks; {
			p.enter(s.table)
		}
	}
	p.pending = p.pending[:copy(p.pending, p.pending[n:])]
	n = 0
	for _, s := range p.late {
		if s.step > step {
			p.late[n] = s
			n++
			continue
		}
		if s.key != 0 {
			p.put(s.block, s.key)
			p.version++
		}
		p.giveUp(s.block)
	}
	p.late = p.late[:n]
}
