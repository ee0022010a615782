package kv

import (
	"pgregory.net/rapid"
)

// access makes a layer's accesses.
func (x *script) access(l *Layer, batch []*Seq, sels []Selection) {
	heads := l.To - l.From
	for i := range sels {
		x.c.Access(batch[i/heads], l.From+i%heads, &sels[i])
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
		s.Pin(0)
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
