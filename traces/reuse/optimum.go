package reuse

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Optimum returns the prompt tokens that an optimal cache of each capacity, in blocks, hits for the
// remembered requests: Belady's MIN (1966). After each request it keeps, of its content and the
// request's blocks, the blocks with the soonest next hit. It is optimal among caches of that size
// that serve requests serially: each block kept until its next use is a hit, at most capacity
// blocks stay at any time, and evicting the furthest next use keeps the most (greedy colouring of
// intervals). A prefix is hit no later than its continuations, so a block is never kept without its
// predecessors.
//
// Cost: O(log n) per run of a request and capacity. It returns nil if Remembers is false.
func (s *Stack) Optimum(capacities ...int64) (tokens []int64) {
	if !s.Remembers() {
		return nil
	}
	uses, ends := s.allUses()
	next := nextUses(uses, ends, len(s.runs))
	for _, capacity := range capacities {
		o := &optimum{capacity: capacity, held: make([]holding, 2*len(s.runs))}
		o.order.Moved = func(h *holding, at int) { h.at = int32(at) }
		o.order.Before = func(a, b *holding) bool {
			return a.next > b.next || a.next == b.next && a.depth > b.depth
		}
		tokens = append(tokens, o.serve(uses, ends, next)*int64(s.block))
	}
	return tokens
}

// serve returns the number of block hits.
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

// use is one use of blocks that are always used together: the last block of a run, which is
// computed again when a prompt ends with it, or all its other blocks. hits is false if the request
// only computes the blocks.
type use struct {
	piece  int32 // 2 * run number, + 1 for the run's last block
	blocks int32
	depth  uint32 // order of the pieces in a text
	hits   bool
}

// allUses returns the uses of all requests in order, and the end index of each request's uses. Runs
// are final: no run is split any more. Content without a name is never used again and is left out.
func (s *Stack) allUses() (uses []use, ends []int) {
	uses = make([]use, 0, 2*s.uses)
	for _, request := range s.requests {
		key, end, most := uint64(1), 0, (request.prompt-1)/s.block
		follow := func(id uint64, tokens int) {
			if tokens <= 0 {
				return
			}
			piece := prefix.Mix(key, id)
			key = prefix.Mix(piece, uint64(tokens))
			for offset := 0; offset < tokens; {
				n := s.names.Find(s.edges, edge(piece, offset))
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

// unused is the next use of a piece that is never hit again.
const unused = math.MaxInt32

// nextUses returns, for each use, the next request that hits its piece.
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

// optimum is the cache. Its heap has the furthest next use first, and of equal ones the deepest.
type optimum struct {
	capacity, total int64
	held            []holding // by piece
	order           des.Heap[*holding]
}

// holding is the leading blocks of a piece that the cache holds.
type holding struct {
	blocks int32
	next   int32 // request with the next hit
	depth  uint32
	at     int32 // index in order; gone: not in the heap
}

// keep holds all blocks of a piece until their next hit.
func (o *optimum) keep(h *holding, blocks, next int32) {
	if next == unused {
		blocks = 0
	}
	o.total += int64(blocks - h.blocks)
	h.blocks, h.next = blocks, next
	switch {
	case h.at >= 0 && blocks == 0:
		o.order.Remove(int(h.at))
	case h.at >= 0:
		o.order.Fix(int(h.at))
	case blocks > 0:
		o.order.Push(h)
	}
}

// shrink evicts blocks until the cache fits its capacity.
func (o *optimum) shrink() {
	for o.total > o.capacity {
		h := o.order.Top()
		n := min(int64(h.blocks), o.total-o.capacity)
		o.total -= n
		if h.blocks -= int32(n); h.blocks == 0 {
			o.order.Remove(0)
		}
	}
}
