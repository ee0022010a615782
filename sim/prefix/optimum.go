package prefix

import (
	"container/heap"
	"math"
)

// Optimum returns how many prompt tokens the best cache of each of so many blocks had of what
// Remember has kept, one that knows the requests to come: Belady's MIN (1966). After a request it
// keeps, of what it has and what the request has computed, the blocks that are hit soonest again.
// No cache of that size that serves requests one after another hits more: a block that stays from
// one request to the next that could hit it is a hit, at most so many stay at any time, and giving
// up the one that is needed last keeps most (greedy colouring of intervals). A prefix is hit no
// later than what follows it, so that a block is never there without those before it.
//
// O(log n) a run of a request and capacity. It is nil where requests are of more runs than it goes
// over.
func (s *Stack) Optimum(capacities ...int64) (tokens []int64) {
	if !s.Remembers() {
		return nil
	}
	uses := s.allUses()
	next := nextUses(uses)
	for _, capacity := range capacities {
		o := &optimum{capacity: capacity, held: map[piece]*holding{}}
		tokens = append(tokens, o.serve(uses, next)*int64(s.block))
	}
	return tokens
}

// serve returns the blocks that requests hit.
func (o *optimum) serve(uses [][]use, next [][]int32) (hits int64) {
	for i, request := range uses {
		for j, u := range request {
			h := o.held[u.piece]
			if h == nil {
				h = &holding{depth: u.depth(), at: -1}
				o.held[u.piece] = h
			}
			if u.hits {
				hits += h.blocks
			}
			o.keep(h, u.blocks, next[i][j])
		}
		o.shrink()
	}
	return hits
}

// piece is blocks that requests always use together: a run's last block, which a prompt may end
// with and then computes anew, or all others.
type piece struct {
	run  *run
	last bool
}

// depth orders the pieces of a text.
func (p piece) depth() int {
	if p.last {
		return 2*p.run.end - 1
	}
	return 2 * p.run.start
}

// use is a request's use of a piece: one that hits if the piece is there, or only computes it.
type use struct {
	piece
	blocks int64
	hits   bool
}

// allUses returns what each request uses, in order. Its runs are those of the whole trace:
// none ends within another. What has no name is never used again, and is none of them.
func (s *Stack) allUses() [][]use {
	all := make([][]use, len(s.requests))
	for i, r := range s.requests {
		at, most := &s.root, (r.prompt-1)/s.block
		follow := func(id uint64, tokens int) {
			for offset := 0; offset < tokens; {
				at = s.runs[edge{at, id, offset}]
				offset += at.end - at.start
				first, end := at.start/s.block, at.end/s.block
				if n := end - 1 - first; n > 0 {
					all[i] = append(all[i], use{piece{at, false}, int64(n), end-1 <= most})
				}
				if end > first {
					all[i] = append(all[i], use{piece{at, true}, 1, end <= most})
				}
			}
		}
		for _, p := range r.content.Prompt {
			follow(p.ID, min(p.Tokens, r.prompt-at.end))
		}
		if r.content.Answer != 0 && at.end == r.prompt {
			follow(r.content.Answer, r.output-1)
		}
	}
	return all
}

// unused is the next use of what is never hit again.
const unused = math.MaxInt32

// nextUses returns which request hits each use's piece next.
func nextUses(uses [][]use) [][]int32 {
	after := map[piece]int32{}
	next := make([][]int32, len(uses))
	for i := len(uses) - 1; i >= 0; i-- {
		next[i] = make([]int32, len(uses[i]))
		for j, u := range uses[i] {
			next[i][j] = unused
			if n, ok := after[u.piece]; ok {
				next[i][j] = n
			}
			if u.hits {
				after[u.piece] = int32(i)
			}
		}
	}
	return next
}

// optimum is the cache: what it holds, in a heap with what is needed last, and deepest, first.
type optimum struct {
	capacity, total int64
	held            map[piece]*holding
	order           []*holding
}

// holding is the blocks of a piece that are held, its first ones.
type holding struct {
	blocks int64
	next   int32 // request that hits it
	depth  int
	at     int // in order; -1: it is not there
}

// keep has all blocks of a piece be held until they are hit next.
func (o *optimum) keep(h *holding, blocks int64, next int32) {
	if next == unused {
		blocks = 0
	}
	o.total += blocks - h.blocks
	h.blocks, h.next = blocks, next
	switch {
	case h.at >= 0 && blocks == 0:
		heap.Remove(o, h.at)
	case h.at >= 0:
		heap.Fix(o, h.at)
	case blocks > 0:
		heap.Push(o, h)
	}
}

// shrink gives up what is more than the cache has memory for.
func (o *optimum) shrink() {
	for o.total > o.capacity {
		h := o.order[0]
		n := min(h.blocks, o.total-o.capacity)
		o.total -= n
		if h.blocks -= n; h.blocks == 0 {
			heap.Pop(o)
		}
	}
}

func (o *optimum) Len() int { return len(o.order) }

func (o *optimum) Less(i, j int) bool {
	a, b := o.order[i], o.order[j]
	return a.next > b.next || a.next == b.next && a.depth > b.depth
}

func (o *optimum) Swap(i, j int) {
	o.order[i], o.order[j] = o.order[j], o.order[i]
	o.order[i].at, o.order[j].at = i, j
}

func (o *optimum) Push(x any) {
	h := x.(*holding)
	h.at = len(o.order)
	o.order = append(o.order, h)
}

func (o *optimum) Pop() any {
	last := len(o.order) - 1
	h := o.order[last]
	h.at, o.order = -1, o.order[:last]
	return h
}
