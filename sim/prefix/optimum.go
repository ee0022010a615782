package prefix

import (
	"container/heap"
	"math"
	"slices"
)

// Optimum returns how many prompt tokens the best cache of each capacity, in blocks, had of what
// Remember has kept, one that knows the requests to come: Belady's MIN (1966). After a request it
// keeps, of what it has and what the request has computed, the blocks that are hit soonest again.
// No cache of that size that serves requests one after another hits more: a block that stays from
// one request to the next that could hit it is a hit, at most capacity blocks stay at any time, and
// giving up the one that is needed last keeps most (greedy colouring of intervals). A prefix is hit
// no later than what follows it, so that a block is never there without those before it.
//
// O(log n) a run of a request and capacity. It is nil where requests are of more runs than it goes
// over.
func (s *Stack) Optimum(capacities ...int64) (tokens []int64) {
	if !s.Remembers() {
		return nil
	}
	uses, ends := s.allUses()
	next := nextUses(uses, ends, len(s.runs))
	for _, capacity := range capacities {
		o := &optimum{capacity: capacity, held: make([]holding, 2*len(s.runs))}
		tokens = append(tokens, o.serve(uses, ends, next)*int64(s.block))
	}
	return tokens
}

// serve returns the blocks that requests hit.
func (o *optimum) serve(uses []use, ends []int, next []int32) (hits int64) {
	for i := range o.held {
		o.held[i].at = gone
	}
	begin := 0
	for _, end := range ends {
		for j, u := range uses[begin:end] {
			h := &o.held[u.piece]
			if h.depth = u.depth; u.hits {
				hits += int64(h.blocks)
			}
			o.keep(h, u.blocks, next[begin+j])
		}
		o.shrink()
		begin = end
	}
	return hits
}

// use is a request's use of blocks that requests always use together: a run's last block, which a
// prompt may end with and then computes anew, or all others. It hits if they are there, or only
// computes them.
type use struct {
	piece  int32 // number of the run times 2, and 1 for its last block
	blocks int32
	depth  uint32 // orders the pieces of a text
	hits   bool
}

// allUses returns what requests use, in order, and where each request's uses end. Their runs are
// the runs of the whole trace: none ends within another. What has no name is never used again, and
// is none of them.
func (s *Stack) allUses() (uses []use, ends []int) {
	uses = make([]use, 0, 2*s.uses)
	for _, request := range s.requests {
		key, end, most := uint64(1), 0, (request.prompt-1)/s.block
		follow := func(id uint64, tokens int) {
			if tokens <= 0 {
				return
			}
			piece := mix(key, id)
			key = mix(piece, uint64(tokens))
			for offset := 0; offset < tokens; {
				n := s.names.find(s.edges, edge(piece, offset))
				r := &s.runs[n]
				offset, end = offset+int(r.end-r.start), int(r.end)
				first, last := int(r.start)/s.block, end/s.block
				if blocks := last - 1 - first; blocks > 0 {
					uses = append(uses, use{2 * n, int32(blocks), 2 * uint32(first), last-1 <= most})
				}
				if last > first {
					uses = append(uses, use{2*n + 1, 1, 2*uint32(last) - 1, last <= most})
				}
			}
		}
		for _, p := range request.content.Prompt {
			follow(p.ID, min(p.Tokens, request.prompt-end))
		}
		if request.content.Answer != 0 && end == request.prompt {
			follow(request.content.Answer, request.output-1)
		}
		ends = append(ends, len(uses))
	}
	return uses, ends
}

// unused is the next use of what is never hit again.
const unused = math.MaxInt32

// nextUses returns which request hits each use's piece next.
func nextUses(uses []use, ends []int, runs int) []int32 {
	next, after := make([]int32, len(uses)), make([]int32, 2*runs)
	for i := range after {
		after[i] = unused
	}
	for i, end := range slices.Backward(ends) {
		begin := 0
		if i > 0 {
			begin = ends[i-1]
		}
		for j := begin; j < end; j++ {
			u := &uses[j]
			if next[j] = after[u.piece]; u.hits {
				after[u.piece] = int32(i)
			}
		}
	}
	return next
}

// optimum is the cache: what it holds, in a heap with what is needed last, and deepest, first.
type optimum struct {
	capacity, total int64
	held            []holding // by piece
	order           []*holding
}

// holding is the blocks of a piece that are held, its first ones.
type holding struct {
	blocks int32
	next   int32 // request that hits it
	depth  uint32
	at     int32 // in order; gone: it is not there
}

// keep has all blocks of a piece be held until they are hit next.
func (o *optimum) keep(h *holding, blocks, next int32) {
	if next == unused {
		blocks = 0
	}
	o.total += int64(blocks - h.blocks)
	h.blocks, h.next = blocks, next
	switch {
	case h.at >= 0 && blocks == 0:
		heap.Remove(o, int(h.at))
	case h.at >= 0:
		heap.Fix(o, int(h.at))
	case blocks > 0:
		heap.Push(o, h)
	}
}

// shrink gives up what is more than the cache has memory for.
func (o *optimum) shrink() {
	for o.total > o.capacity {
		h := o.order[0]
		n := min(int64(h.blocks), o.total-o.capacity)
		o.total -= n
		if h.blocks -= int32(n); h.blocks == 0 {
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
	o.order[i].at, o.order[j].at = int32(i), int32(j)
}

func (o *optimum) Push(x any) {
	h := x.(*holding)
	h.at = int32(len(o.order))
	o.order = append(o.order, h)
}

func (o *optimum) Pop() any {
	last := len(o.order) - 1
	h := o.order[last]
	h.at, o.order = gone, o.order[:last]
	return h
}
