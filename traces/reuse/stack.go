package reuse

import (
	"math/bits"
	"slices"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Stack simulates LRU prefix caches of all capacities at once by stack distances (Mattson et al.
// 1970): one pass over a trace gives the hits of every capacity. Requests are served serially. Each
// leaves the full blocks of its prompt and of its output except the last token, which no step has
// computed. The first block of a request is evicted last, so that a cache never has a block without
// its predecessors.
//
// It is a tree of pieces, split into runs that have always been used together. A request costs
// O(log n) per run, independent of its tokens.
//
// Memory is bounded. Beyond mostRuns runs the stack halves its sample of pieces, as often as
// needed. It selects them by a hash of each piece and its prefix, and counts a kept piece for all
// that it stands for (SHARDS, Waldspurger et al., FAST 2015). Sampled reports this.
type Stack struct {
	block int          // tokens
	runs  []run        // by number
	free  []int32      // unused run numbers
	names prefix.Index // runs by their edges
	edges []uint64     // by run; 0: unnamed
	slots fenwick      // blocks by slot
	order []int32      // run by slot; gone: the run has moved to a later slot
	path  []int32      // sampled runs of the current request

	hits   []hit
	far    map[int64]int64 // blocks of older hits by the rounded capacity that they need
	prompt int64           // prompt tokens of all requests
	stored int64           // blocks of all sampled runs
	served uint64          // requests

	most int  // runs
	rate uint // one piece in 2^rate is in the sample
	// unseen is the number of named prompt blocks minus the sampled blocks times 2^rate: the error of
	// the sample. Hits of the shortest distance correct for it (SHARDS-adj).
	unseen int64

	// Remember keeps the requests passed to Serve for Optimum, up to mostUses run uses.
	Remember bool
	requests []remembered
	uses     int // run uses of the kept requests
}

// Limits of a Stack: 60 bytes per run, 16 per hit, and for Optimum 60 per use. A conversation of n
// turns has n^2 uses.
const (
	mostRuns = 1 << 19
	mostHits = 1 << 20
	mostUses = 1 << 20
)

// gone marks a slot without a run.
const gone = -1

// remembered is a request of known content.
type remembered struct {
	content        *prefix.Content
	prompt, output int
}

// run is a contiguous range of tokens of a piece.
type run struct {
	piece      uint64 // key of the piece and all pieces before it
	offset     int32  // offset in the piece in tokens
	start, end int32  // tokens from the beginning of the prompt
	slot       int32  // position of the last use in order
}

// edge returns the name of the part of a piece that begins at an offset.
func edge(piece uint64, offset int) uint64 { return prefix.Mix(piece, uint64(offset)) }

// hit is a group of prompt blocks that were contiguous in the stack, below above other blocks. Each
// block counts 2^rate times.
type hit struct {
	above  int64
	blocks int32
	rate   uint32
}

// least returns the smallest capacity that hits all blocks.
func (h hit) least() int64 { return h.above + int64(h.blocks) }

// NewStack returns an empty stack with block tokens per block.
func NewStack(block int) *Stack {
	return &Stack{block: block, names: prefix.NewIndex(0), most: mostRuns}
}

// walk is the position of one request in the tree.
type walk struct {
	key    uint64 // key of all pieces so far
	end    int    // tokens so far
	most   int    // prompt blocks that can be hits
	cached int    // blocks that an unbounded cache hits
}

// Serve serves a request of prompt and output tokens and returns the prompt tokens that an
// unbounded cache hits: whole blocks, never including the last token, which is computed for its
// logits. It is an estimate once Sampled is below 1. Content may be nil or end early: unknown
// tokens occupy the cache and never hit.
func (s *Stack) Serve(c *prefix.Content, prompt, output int) (cached int) {
	s.served++
	s.prompt += int64(prompt)
	all := prompt + output - 1
	w := walk{key: 1, most: (prompt - 1) / s.block}
	s.path = s.path[:0]
	if c != nil {
		for _, p := range c.Prompt {
			s.follow(&w, p.ID, min(p.Tokens, prompt-w.end))
		}
		if c.Answer != 0 && w.end == prompt {
			s.follow(&w, c.Answer, all-prompt)
		}
	}
	if piece := prefix.Mix(0, s.served); w.end < all && s.keeps(piece) { // unnamed content
		s.add(run{piece: piece, start: int32(w.end), end: int32(all)})
	}
	s.touch()
	if c != nil && s.Remember {
		s.remember(remembered{c, prompt, output})
	}
	for len(s.runs)-len(s.free) > s.most {
		s.thin()
	}
	return w.cached * s.block
}

// remember keeps a request. Beyond mostUses run uses it drops all requests.
func (s *Stack) remember(r remembered) {
	if s.uses += len(s.path); s.uses > mostUses {
		s.requests = nil
		return
	}
	s.requests = append(s.requests, r)
}

// Remembers reports whether all requests so far are kept.
func (s *Stack) Remembers() bool { return s.Remember && s.uses <= mostUses }

// Sampled returns the share of pieces in the sample. Below 1 all counts are estimates.
func (s *Stack) Sampled() float64 { return 1 / float64(uint64(1)<<s.rate) }

// keeps reports whether a piece is in the sample.
func (s *Stack) keeps(piece uint64) bool { return piece>>(64-s.rate) == 0 }

// follow advances the walk by the tokens of a text, over known or new runs. Known prompt blocks are
// hits. After a new run, or a part of a run, there are no hits, because nothing has followed it
// before.
func (s *Stack) follow(w *walk, id uint64, tokens int) {
	if tokens <= 0 {
		return
	}
	piece, start := prefix.Mix(w.key, id), w.end
	w.key, w.end = prefix.Mix(piece, uint64(tokens)), start+tokens
	named := int64(max(0, min(w.end/s.block, w.most)-start/s.block))
	s.unseen += named
	if !s.keeps(piece) {
		return
	}
	s.unseen -= named << s.rate
	for offset := 0; offset < tokens; {
		e, left := edge(piece, offset), tokens-offset
		n := s.names.Find(s.edges, e)
		if n < 0 {
			s.name(s.add(run{piece: piece, offset: int32(offset), start: int32(start + offset),
				end: int32(w.end)}), e)
			return
		}
		above := s.stored - s.slots.sum(int(s.runs[n].slot))
		if r := s.runs[n]; int(r.end-r.start) > left {
			n = s.split(n, left)
		}
		r := s.runs[n]
		if n := min(int(r.end)/s.block, w.most) - int(r.start)/s.block; n > 0 {
			s.hit(hit{above << s.rate, int32(n), uint32(s.rate)})
			w.cached += n << s.rate
		}
		s.path = append(s.path, n)
		offset += int(r.end - r.start)
	}
}

// hit records a hit. Runs that were last used together are contiguous in the stack, such as all
// turns of a session except the newest. They are merged into one hit.
func (s *Stack) hit(h hit) {
	n := len(s.hits)
	if n > 0 && s.hits[n-1].least() == h.above && s.hits[n-1].rate+h.rate == 0 {
		s.hits[n-1].blocks += h.blocks
		return
	}
	if n == mostHits {
		s.round()
	}
	s.hits = append(s.hits, h)
}

// round merges the hits so far by the capacity that covers each hit, rounded up to 12 leading bits.
func (s *Stack) round() {
	if s.far == nil {
		s.far = map[int64]int64{}
	}
	for _, h := range s.hits {
		drop := max(0, bits.Len64(uint64(h.least()))-12)
		s.far[(h.least()+1<<drop-1)>>drop<<drop] += int64(h.blocks) << h.rate
	}
	s.hits = s.hits[:0]
}

// blocks returns the number of blocks whose last token is in the run.
func (s *Stack) blocks(n int32) int64 {
	return int64(int(s.runs[n].end)/s.block - int(s.runs[n].start)/s.block)
}

// split splits a run after the given tokens and returns its head, which keeps the name. The rest
// keeps its stack position.
func (s *Stack) split(n int32, tokens int) (head int32) {
	r := s.runs[n]
	r.end, r.slot = r.start+int32(tokens), gone
	head = s.number(r)
	s.slots.add(int(s.runs[n].slot), -s.blocks(head))
	s.names.Remove(s.edges, n)
	s.name(head, s.edges[n])
	rest := &s.runs[n]
	rest.offset, rest.start = rest.offset+int32(tokens), r.end
	s.name(n, edge(rest.piece, int(rest.offset)))
	return head
}

// name adds a run to the index under its edge.
func (s *Stack) name(n int32, edge uint64) {
	s.edges[n] = edge
	s.names.Insert(s.edges, n)
}

// number stores a run and returns its number.
func (s *Stack) number(r run) (n int32) {
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
		s.runs[n], s.edges[n] = r, 0
		return n
	}
	s.runs, s.edges = append(s.runs, r), append(s.edges, 0)
	return int32(len(s.runs) - 1)
}

// add stores a new run and appends it to the path.
func (s *Stack) add(r run) int32 {
	r.slot = gone
	n := s.number(r)
	s.stored += s.blocks(n)
	s.path = append(s.path, n)
	return n
}

// touch moves the path to the top of the stack, its first run uppermost.
func (s *Stack) touch() {
	if len(s.order)+len(s.path) > len(s.slots) {
		s.compact()
	}
	for _, n := range slices.Backward(s.path) {
		r, blocks := &s.runs[n], s.blocks(n)
		if r.slot != gone {
			s.slots.add(int(r.slot), -blocks)
			s.order[r.slot] = gone
		}
		r.slot = int32(len(s.order))
		s.order = append(s.order, n)
		s.slots.add(int(r.slot), blocks)
	}
}

// compact removes the gaps of order and reserves room for as many entries again.
func (s *Stack) compact() {
	s.order = slices.DeleteFunc(s.order, func(n int32) bool { return n == gone })
	s.slots = make(fenwick, 2*(len(s.order)+len(s.path))+1024)
	for i, n := range s.order {
		s.runs[n].slot = int32(i)
		s.slots.add(i, s.blocks(n))
	}
}

// thin drops half of the sampled pieces, and the requests for Optimum, which needs all pieces.
func (s *Stack) thin() {
	s.rate++
	s.requests, s.uses = nil, mostUses+1
	for i, n := range s.order {
		if n == gone || s.keeps(s.runs[n].piece) {
			continue
		}
		s.stored -= s.blocks(n)
		if s.edges[n] != 0 {
			s.names.Remove(s.edges, n)
		}
		s.free, s.order[i] = append(s.free, n), gone
	}
	s.path = s.path[:0]
	s.compact()
}

// Prompt returns the prompt tokens of all requests.
func (s *Stack) Prompt() int64 { return s.prompt }

// Blocks returns the number of blocks that an unbounded cache holds. Larger caches do not hit more.
func (s *Stack) Blocks() int64 { return s.stored << s.rate }

// Hits returns the number of prompt tokens that an LRU cache of the given capacity in blocks hits.
func (s *Stack) Hits(capacity int64) int64 {
	if capacity <= 0 {
		return 0
	}
	blocks := s.unseen
	for _, h := range s.hits {
		blocks += max(0, min(int64(h.blocks), capacity-h.above)) << h.rate
	}
	for least, n := range s.far {
		if least <= capacity {
			blocks += n
		}
	}
	return max(0, blocks) * int64(s.block)
}

// fenwick is a binary indexed tree of sums (Fenwick 1994).
type fenwick []int64

func (f fenwick) add(i int, v int64) {
	for i++; i <= len(f); i += i & -i {
		f[i-1] += v
	}
}

// sum returns the sum of places 0 to i.
func (f fenwick) sum(i int) (v int64) {
	for i++; i > 0; i -= i & -i {
		v += f[i-1]
	}
	return v
}
