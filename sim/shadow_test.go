package sim_test

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// place is one block of one request; content is how many of its tokens a slot
// holds.
type place struct{ id, group, block int }
type content struct {
	place
	tokens int
}

// shadow keeps track of which tokens are where, as a device that moves real
// data would leave them, and checks all that attention is told to read.
type shadow struct {
	sim.Device
	*scenario
	step  sim.Step
	moves kv.Moves
	hbm   map[int32]content // by slot
	dram  map[place]bool    // full blocks
	stash map[place]int     // tokens of a layer-segmented prefill's open blocks
	dense map[place]int     // tokens, without offloading
	tables
}

func (m *shadow) Begin(s *sim.Step) error {
	for _, d := range s.Dropped {
		m.drop(d.ID)
	}
	m.step = *s
	m.tables.begin(s)
	ids := m.ids()
	for i := range s.Rows {
		if r := &s.Rows[i]; !r.Decode && r.From == 0 && r.LayerFrom == 0 && ids[r.ID] {
			return fmt.Errorf("request %d begins to prefill while blocks of it are left", r.ID)
		}
	}
	if len(s.Rows) != s.Requests {
		return fmt.Errorf("%d rows of %d requests", len(s.Rows), s.Requests)
	}
	return m.Device.Begin(s)
}

// ids returns the requests of which anything is left.
func (m *shadow) ids() map[int]bool {
	ids := map[int]bool{}
	for p := range m.dram {
		ids[p.id] = true
	}
	for _, of := range []map[place]int{m.stash, m.dense} {
		for p := range of {
			ids[p.id] = true
		}
	}
	return ids
}

func (m *shadow) drop(id int) {
	for _, of := range []map[place]int{m.stash, m.dense} {
		for p := range of {
			if p.id == id {
				delete(of, p)
			}
		}
	}
	for p := range m.dram {
		if p.id == id {
			delete(m.dram, p)
		}
	}
}

func (m *shadow) Move(moves *kv.Moves) error {
	if int64(len(moves.LoadRefs)) != moves.Loads {
		return fmt.Errorf("layer %d: %d loads named of %d", moves.Layer, len(moves.LoadRefs), moves.Loads)
	}
	m.moves = *moves
	for i, ref := range moves.LoadRefs {
		if i > 0 && ref.Round < moves.LoadRefs[i-1].Round || !moves.InRounds && ref.Round > 0 {
			return fmt.Errorf("layer %d: load %d is of round %d", moves.Layer, i, ref.Round)
		}
		p := place{m.idOf(ref.Seq), int(ref.Group), int(ref.Block)}
		if !m.dram[p] {
			return fmt.Errorf("layer %d loads %v, which is not in DRAM", moves.Layer, p)
		}
		m.hbm[int32(ref.Slot)] = content{p, m.spec.BlockTokens}
	}
	return m.Device.Move(moves)
}

func (m *shadow) idOf(seq int32) int {
	for i := range m.step.Rows {
		if m.step.Rows[i].Seq == seq {
			return m.step.Rows[i].ID
		}
	}
	return -1
}

func (m *shadow) Compute(layer int, w *sim.Work) error {
	if len(w.Rounds) > 0 {
		if err := m.rounds(layer, w); err != nil {
			return fmt.Errorf("layer %d, %+v: %w", layer, w, err)
		}
	}
	if m.spec.GPULookup() {
		if err := m.lookUp(layer, w); err != nil {
			return fmt.Errorf("layer %d, %+v: table: %w", layer, w, err)
		}
	}
	m.moves = kv.Moves{}
	for i := 0; i < w.Decodes; i++ {
		for h := range m.model.KVHeads {
			if err := m.decode(layer, i, h, w); err != nil {
				return fmt.Errorf("layer %d, head %d, %+v: %w", layer, h, m.step.Rows[i], err)
			}
		}
	}
	for i, table := range w.Tables {
		row := &m.step.Rows[table.Row]
		if span := w.Prefill[i]; span.Query != row.To-row.From || span.Prefix != row.From ||
			!row.In(layer) {
			return fmt.Errorf("layer %d: span %+v of %+v", layer, span, row)
		}
		for h := range m.model.KVHeads {
			if err := m.prefill(layer, row, h, &table); err != nil {
				return fmt.Errorf("layer %d, head %d, %+v: %w", layer, h, row, err)
			}
		}
	}
	return m.Device.Compute(layer, w)
}

// rounds checks that the lists and loads of a layer come in the rounds that its
// work tells.
func (m *shadow) rounds(layer int, w *sim.Work) error {
	loads := make([]int64, len(w.Rounds))
	for _, ref := range m.moves.LoadRefs {
		loads[ref.Round]++
		row := slices.IndexFunc(m.step.Rows, func(r sim.Row) bool { return r.Decode && r.Seq == ref.Seq })
		if row < 0 {
			continue // of a prefill that had been set back
		}
		unit := row*m.model.KVHeads + int(ref.Group)%m.model.KVHeads
		n := int(w.Lists.Count[unit])
		at := slices.Index(w.Lists.Block[unit*w.Lists.Stride:][:n], ref.Block)
		last := (n - 1) / m.spec.Selection.Microbatch
		switch kept := m.spec.Selection.SinkBlocks + m.spec.Selection.RecentBlocks; {
		case at < 0 && int(ref.Round) <= last:
			return fmt.Errorf("block %d of unit %d is loaded for round %d and not attended to", ref.Block,
				unit, ref.Round)
		case at >= kept && int(ref.Round) != at/m.spec.Selection.Microbatch || at >= 0 && at < kept &&
			ref.Round != 0:
			return fmt.Errorf("block %d of unit %d comes as number %d and is loaded for round %d", ref.Block,
				unit, at, ref.Round)
		}
	}
	most := 0
	for i, r := range w.Rounds {
		if loads[i] != r.Loads {
			return fmt.Errorf("%d blocks are named for round %d, %d are counted", loads[i], i, r.Loads)
		}
		if r.Tokens > 0 {
			most = i + 1
		}
	}
	if longest := int(slices.Max(w.Lists.Count)); most != (longest+m.spec.Selection.Microbatch-1)/
		m.spec.Selection.Microbatch {
		return fmt.Errorf("%d rounds attend to something, the longest list has %d blocks", most,
			longest)
	}
	return nil
}

// decode checks one list and writes the newest token.
func (m *shadow) decode(layer, i, head int, w *sim.Work) error {
	row, size := &m.step.Rows[i], m.spec.BlockTokens
	if !row.Decode || row.To != row.From+1 {
		return fmt.Errorf("row %d is no decode", i)
	}
	open := place{row.ID, layer*m.model.KVHeads + head, row.From / size}
	if w.Lists == nil {
		return m.fill(open, row.From%size, row.From%size+1)
	}
	unit := i*m.model.KVHeads + head
	n := int(w.Lists.Count[unit])
	list := w.Lists.Block[unit*w.Lists.Stride:][:n]
	if want := min(m.geometry().Blocks(row.To), sim.Candidates(&m.spec)+m.spec.Selection.SinkBlocks+
		m.spec.Selection.RecentBlocks); w.Sparse && n != want &&
		!(sized(m.spec.Selection.Policy) && n <= m.geometry().Blocks(row.To)) {
		return fmt.Errorf("%d blocks selected, want %d", n, want)
	}
	at := slices.Index(list, int32(open.block))
	if at < 0 {
		return fmt.Errorf("the open block, %d, is not among %v", open.block, list)
	}
	slots := w.Lists.Slot
	if m.spec.GPULookup() {
		slots = m.found
	}
	if m.spec.Offload.On && w.Lists.Open[unit] != slots[unit*w.Lists.Stride:][at] {
		return fmt.Errorf("the open block is listed in slot %d, the list has it in %d",
			w.Lists.Open[unit], slots[unit*w.Lists.Stride:][at])
	}
	seen := map[int32]bool{}
	for j, b := range list {
		if seen[b] {
			return fmt.Errorf("block %d is listed twice", b)
		}
		seen[b] = true
		p, want := place{row.ID, open.group, int(b)}, size
		if p == open {
			want = row.From % size
		}
		if !m.spec.Offload.On {
			if got := m.dense[p]; got != want {
				return fmt.Errorf("%v holds %d tokens, want %d", p, got, want)
			}
			continue
		}
		slot := slots[unit*w.Lists.Stride:][j]
		if kept, ok := m.stash[p]; ok { // the first decode after a layer-segmented prefill
			delete(m.stash, p)
			m.hbm[slot] = content{p, kept}
		}
		if got := m.hbm[slot]; want > 0 && got != (content{p, want}) {
			return fmt.Errorf("slot %d of %v holds %v, want %d tokens", slot, p, got, want)
		}
		if p == open {
			m.hbm[slot] = content{p, want + 1}
			if want+1 == size {
				m.dram[p] = true
			}
		}
	}
	if !m.spec.Offload.On {
		return m.fill(open, row.From%size, row.From%size+1)
	}
	return nil
}

// sized reports whether a selection's size depends on the scores.
func sized(selection string) bool {
	return !slices.Contains([]string{"arkvale", "quest"}, selection)
}

// fill writes tokens of a block without offloading.
func (m *shadow) fill(p place, from, to int) error {
	if got := m.dense[p]; got != from {
		return fmt.Errorf("%v holds %d tokens, %d to %d are written", p, got, from, to)
	}
	m.dense[p] = to
	return nil
}

// prefill checks the prefix of one segment and writes its tokens.
func (m *shadow) prefill(layer int, row *sim.Row, head int, table *sim.Table) error {
	size, group := m.spec.BlockTokens, layer*m.model.KVHeads+head
	for b := 0; b*size < row.To; b++ {
		p := place{row.ID, group, b}
		was, is := clamp(row.From-b*size, size), clamp(row.To-b*size, size)
		switch {
		case !m.spec.Offload.On:
			if err := m.fill(p, was, is); err != nil {
				return err
			}
		case row.Segmented:
			if delete(m.stash, p); is == size {
				m.dram[p] = true
			} else {
				m.stash[p] = is
			}
		default:
			if table.Blocks != m.geometry().Blocks(row.To) {
				return fmt.Errorf("a table of %d blocks for %d tokens", table.Blocks, row.To)
			}
			slot := table.Slot[head*table.Blocks+b]
			if got := m.hbm[slot]; was > 0 && got != (content{p, was}) {
				return fmt.Errorf("slot %d of %v holds %v, want %d tokens", slot, p, got, was)
			}
			m.hbm[slot] = content{p, is}
			if is == size {
				m.dram[p] = true
			}
		}
	}
	return nil
}

func (m *shadow) geometry() kv.Geometry { return m.model.Geometry(m.spec.BlockTokens) }

func clamp(n, most int) int { return max(0, min(n, most)) }
