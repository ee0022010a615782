package kv

import (
	"slices"
)

// block is a block in HBM, by the handle of its request, group and index.
type block struct {
	seq, group, index int
}

func blockOf(r ref) block { return block{int(r.seq), int(r.group), int(r.block)} }

// item is a block with its visited bit.
type item struct {
	block
	visited bool
}

// blockList is a list with the oldest block first.
type blockList []item

func (l blockList) hit(b block) {
	for i := range l {
		if l[i].block == b {
			l[i].visited = true
		}
	}
}

type naiveFIFO struct{ blockList }

func (n *naiveFIFO) enter(b block) { n.blockList = append(n.blockList, item{block: b}) }

func (n *naiveFIFO) gone(seq int32) {
	n.blockList = slices.DeleteFunc(n.blockList, func(e item) bool { return e.seq == int(seq) })
}

func (n *naiveFIFO) victim(idle func(block) bool) block {
	for {
		e := n.blockList[0]
		n.blockList = n.blockList[1:]
		if idle(e.block) {
			return e.block
		}
		n.enter(e.block)
	}
}

// naiveClock is the FIFO with a second chance.
type naiveClock struct{ naiveFIFO }

func (n *naiveClock) victim(idle func(block) bool) block {
	for {
		e := n.blockList[0]
		n.blockList = n.blockList[1:]
		if idle(e.block) && !e.visited {
			return e.block
		}
		n.enter(e.block) // not visited
	}
}

// naiveSieve is SIEVE's Algorithm 1 with the tail first and a hand that is an
// index.
type naiveSieve struct {
	blockList
	hand int
}

func (n *naiveSieve) enter(b block) { n.blockList = append(n.blockList, item{block: b}) }

func (n *naiveSieve) gone(seq int32) {
	for i := len(n.blockList) - 1; i >= 0; i-- {
		if n.blockList[i].seq == int(seq) {
			n.remove(i)
		}
	}
}

func (n *naiveSieve) remove(i int) {
	n.blockList = slices.Delete(n.blockList, i, i+1)
	if i < n.hand {
		n.hand--
	}
	if n.hand == len(n.blockList) {
		n.hand = 0
	}
}

func (n *naiveSieve) victim(idle func(block) bool) block {
	for {
		e := n.blockList[n.hand]
		if idle(e.block) && !e.visited {
			n.remove(n.hand)
			return e.block
		}
		n.blockList[n.hand].visited = false
		if n.hand++; n.hand == len(n.blockList) {
			n.hand = 0
		}
	}
}

// naiveScore looks at all.
type naiveScore struct {
	naiveFIFO
	c *Cache
}

func (n *naiveScore) victim(idle func(block) bool) block {
	before := func(a, b block) bool {
		la, lb := n.c.layerOf(a.group), n.c.layerOf(b.group)
		sa, sb := coarse(n.c.seqs[a.seq], a.group, a.index), coarse(n.c.seqs[b.seq], b.group, b.index)
		switch {
		case sa != sb:
			return sa < sb
		case la != lb:
			return la < lb
		case a.seq != b.seq:
			return a.seq < b.seq
		case a.group != b.group:
			return a.group < b.group
		}
		return a.index < b.index
	}
	best := -1
	for i, e := range n.blockList {
		if idle(e.block) && (best < 0 || before(e.block, n.blockList[best].block)) {
			best = i
		}
	}
	b := n.blockList[best].block
	n.blockList = slices.Delete(n.blockList, best, best+1)
	return b
}

func (c *Cache) layerOf(g int) int {
	return slices.IndexFunc(c.layers, func(l *Layer) bool { return g < l.To })
}
