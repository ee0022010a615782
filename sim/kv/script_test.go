package kv

import (
	"pgregory.net/rapid"
)

// access makes a layer's accesses one by one or, when addressed, at the same time: then
// it returns the lists that these are to complete.
func (x *script) access(l *Layer, batch []*Seq, sels []Selection) (lists slotLists) {
	c := x.c
	heads := l.To - l.From
	if !c.addressed || rapid.Bool().Draw(x.t, "one by one") {
		for i := range sels {
			c.Access(batch[i/heads], l.From+i%heads, &sels[i])
		}
		return nil
	}
	const stride = 64
	slots := make([]int32, len(sels)*stride)
	for i := range sels {
		s, g, sel := batch[i/heads], l.From+i%heads, &sels[i]
		sel.At = i * stride
		blocks := seq(s.blocks)
		if !sel.All {
			blocks = append(seq(sel.Sinks), seq(s.blocks)[sel.Tail:]...)
			for _, b := range sel.Next[:sel.Used] {
				blocks = append(blocks, uint16(sel.Sinks)+b)
			}
		}
		for j, b := range blocks {
			at := sel.At + j
			slots[at] = int32(s.Slots(g)[b])
			lists = append(lists, listedSlot{s, g, int(b), &slots[at]})
		}
	}
	c.List(slots)
	for i := range sels {
		c.Access(batch[i/heads], l.From+i%heads, &sels[i])
	}
	return lists
}

// slotLists are the places of slots in a layer's lists.
type slotLists []listedSlot

type listedSlot struct {
	s    *Seq
	g, b int
	slot *int32
}

// check finds each listed slot to be its block's. The lister writes the slots of blocks that begin
// in the step.
func (l slotLists) check(t *rapid.T) {
	for _, e := range l {
		if e.b < e.s.blocks-1 && *e.slot != int32(e.s.Slots(e.g)[e.b]) {
			t.Fatalf("block %d of request %d, group %d is listed in slot %d, is in %d", e.b, e.s.id, e.g,
				*e.slot, e.s.Slots(e.g)[e.b])
		}
	}
}

func (x *script) open(geo Geometry) {
	id := x.next
	x.next++
	chunked := rapid.Bool().Draw(x.t, "chunked")
	least, most := 1, 20 // a chunked prefill is all in HBM
	if !chunked {
		least, most = 60, 160
	}
	prompt := rapid.IntRange(least, most).Draw(x.t, "prompt")
	s := x.c.Open(prompt + 60)
	x.seqs[id], x.tokens[id] = s, prompt
	x.prev[id] = make([][]uint16, geo.Groups())
	x.c.Extend(s, prompt)
	if chunked {
		x.step++ // the prefill is a step of its own
		x.c.BeginStep(nil)
		x.c.Pin(s, 0)
		for _, l := range x.c.layers {
			x.c.Write(l, s)
			if _, err := x.c.Fill(l); err != nil {
				x.t.Fatal(err)
			}
			x.hear()
		}
		x.c.Saved(s, s.full)
		x.c.Unpin(s)
		// Released prefill blocks count as used at the start of the step in
		// which they are released.
		for g := range s.groups {
			for b := range s.blocks {
				x.ref.used[[3]int{id, g, b}] = [2]int{x.step, -1}
			}
		}
	} else if err := x.c.Segmented(s); err != nil {
		x.t.Fatal(err)
	}
}

func (x *script) free(id int) {
	for _, n := range x.naive {
		n.gone(x.seqs[id].id)
	}
	x.mirror.forget(x.seqs[id])
	x.c.Free(x.seqs[id])
	delete(x.seqs, id)
	for key := range x.ref.used {
		if key[0] == id {
			delete(x.ref.used, key)
		}
	}
}
