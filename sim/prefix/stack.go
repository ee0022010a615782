package prefix

import (
	"math/bits"
	"slices"
)

// Stack holds the prefixes of requests as LRU caches of all capacities at once do, by stack
// distances (Mattson et al. 1970): one pass over a trace gives the hits of every capacity. Requests
// are served one after another; each leaves the full blocks of its prompt and of its output but
// the last token, which no step has computed. The first block of a request is the last to go, so
// that a cache never has a block without those before it.
//
// It is a tree of pieces, in runs that have always been used together. A request costs
// O(log n) a run, whatever its tokens.
//
// Memory is bounded. Beyond mostRuns runs the stack halves how many pieces it keeps, as often as it
// must, by a hash of each piece and all before it, and counts a kept one for all (SHARDS,
// Waldspurger et al., FAST 2015). Sampled reports this.
type Stack struct {
	block int      // tokens
	runs  []run    // by number
	free  []int32  // numbers of no run
	names index    // runs by their edges
	edges []uint64 // by run; 0 of no name
	slots fenwick  // blocks by slot
	order []int32  // run by slot; gone: used again since
	path  []int32  // kept runs of the request that is served

	hits   []hit
	far    map[int64]int64 // blocks of older hits by the capacity that has them, rounded
	prompt int64           // tokens of all prompts
	stored int64           // blocks of all kept runs
	served uint64          // requests

	most int  // runs
	rate uint // one piece in 2^rate is kept
	// unseen is the blocks that prompts name, less the blocks of kept pieces times 2^rate: the error
	// of the sample, which hits of the shortest distance make up for (SHARDS-adj).
	unseen int64

	// Remember keeps the requests that Serve is given, for Optimum, up to mostUses.
	Remember bool
	requests []remembered
	uses     int // of runs, by the requests that are kept
}

// What a Stack keeps at most: 60 bytes a run, 16 a hit, and for Optimum 60 a use, of which a
// conversation of n turns has n^2.
const (
	mostRuns = 1 << 19
	mostHits = 1 << 20
	mostUses = 1 << 20
)

// gone is the run of a slot that has none.
const gone = -1

// remembered is a request of known content.
type remembered struct {
	content        *Content
	prompt, output int
}

// run is tokens that follow one another in one place, a part of a piece.
type run struct {
	piece      uint64 // key of all before the piece, and its ID
	offset     int32  // of the run in the piece, in tokens
	start, end int32  // tokens from the beginning of the prompt
	slot       int32  // when it was used last, by order
}

// edge names the part of a piece that begins at an offset.
func edge(piece uint64, offset int) uint64 { return mix(piece, uint64(offset)) }

// hit is blocks of a prompt that stood one below the other in the stack, under above others. Each
// counts 2^rate times.
type hit struct {
	above  int64
	blocks int32
	rate   uint32
}

// least is the smallest capacity that has all its blocks.
func (h hit) least() int64 { return h.above + int64(h.blocks) }

// NewStack returns empty caches. block is the tokens of a block.
func NewStack(block int) *Stack {
	return &Stack{block: block, names: newIndex(0), most: mostRuns}
}

// walk is the way of one request through the tree.
type walk struct {
	key    uint64 // of all pieces so far
	end    int    // tokens so far
	most   int    // blocks of the prompt that may be hits
	cached int    // blocks that a cache without bound had
}

// Serve serves a request of prompt and output tokens and returns the tokens of its prompt that a
// cache without bound had: whole blocks, and never the last token, which is computed for its
// logits. It is an estimate once the stack is Sampled. Content may be nil or end early: what is not
// known fills caches and hits nothing.
func (s *Stack) Serve(c *Content, prompt, output int) (cached int) {
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
	if piece := mix(0, s.served); w.end < all && s.keeps(piece) { // of no name
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

// remember keeps a request while all that are kept have at most mostUses; beyond, none is.
func (s *Stack) remember(r remembered) {
	if s.uses += len(s.path); s.uses > mostUses {
		s.requests = nil
		return
	}
	s.requests = append(s.requests, r)
}

// Remembers reports whether all requests so far are kept.
func (s *Stack) Remembers() bool { return s.Remember && s.uses <= mostUses }

// Sampled returns the share of pieces that are kept. Below 1 all counts are estimates.
func (s *Stack) Sampled() float64 { return 1 / float64(uint64(1)<<s.rate) }

// keeps reports whether a piece is in the sample.
func (s *Stack) keeps(piece uint64) bool { return piece>>(64-s.rate) == 0 }

// follow walks on by the tokens of a text, over known runs or new ones. Known blocks are hits, as
// far as they are blocks of the prompt. After a new run, or a part of one, there are
// none: nothing has ever followed it.
func (s *Stack) follow(w *walk, id uint64, tokens int) {
	if tokens <= 0 {
		return
	}
	piece, start := mix(w.key, id), w.end
	w.key, w.end = mix(piece, uint64(tokens)), start+tokens
	named := int64(max(0, min(w.end/s.block, w.most)-start/s.block))
	s.unseen += named
	if !s.keeps(piece) {
		return
	}
	s.unseen -= named << s.rate
	for offset := 0; offset < tokens; {
		e, left := edge(piece, offset), tokens-offset
		n := s.names.find(s.edges, e)
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

// hit notes a hit. Runs of a prompt that were used together last, as all turns of a session but the
// newest, stand one below the other: they are one hit.
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

// round has the hits so far stand at the capacity that has the whole of each, rounded up to 12
// leading bits.
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

// blocks are those whose last token is in the run.
func (s *Stack) blocks(n int32) int64 {
	return int64(int(s.runs[n].end)/s.block - int(s.runs[n].start)/s.block)
}

// split cuts a run after its first tokens and returns its head, which takes its name. The rest
// keeps its place in the stack.
func (s *Stack) split(n int32, tokens int) (head int32) {
	r := s.runs[n]
	r.end, r.slot = r.start+int32(tokens), gone
	head = s.number(r)
	s.slots.add(int(s.runs[n].slot), -s.blocks(head))
	s.names.remove(s.edges, n)
	s.name(head, s.edges[n])
	rest := &s.runs[n]
	rest.offset, rest.start = rest.offset+int32(tokens), r.end
	s.name(n, edge(rest.piece, int(rest.offset)))
	return head
}

// name has a run be found by its edge.
func (s *Stack) name(n int32, edge uint64) {
	s.edges[n] = edge
	s.names.insert(s.edges, n)
}

// number stores a run.
func (s *Stack) number(r run) (n int32) {
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
		s.runs[n], s.edges[n] = r, 0
		return n
	}
	s.runs, s.edges = append(s.runs, r), append(s.edges, 0)
	return int32(len(s.runs) - 1)
}

// add stores a new run, the next of the path.
func (s *Stack) add(r run) int32 {
	r.slot = gone
	n := s.number(r)
	s.stored += s.blocks(n)
	s.path = append(s.path, n)
	return n
}

// touch moves the path to the top of the stack, its beginning uppermost.
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

// compact closes the gaps of order and makes room for as much again.
func (s *Stack) compact() {
	s.order = slices.DeleteFunc(s.order, func(n int32) bool { return n == gone })
	s.slots = make(fenwick, 2*(len(s.order)+len(s.path))+1024)
	for i, n := range s.order {
		s.runs[n].slot = int32(i)
		s.slots.add(i, s.blocks(n))
	}
}

// thin drops half of the pieces.
func (s *Stack) thin() {
	s.rate++
	for i, n := range s.order {
		if n == gone || s.keeps(s.runs[n].piece) {
			continue
		}
		s.stored -= s.blocks(n)
		if s.edges[n] != 0 {
			s.names.remove(s.edges, n)
		}
		s.free, s.order[i] = append(s.free, n), gone
	}
	s.path = s.path[:0]
	s.compact()
}

// Prompt returns the prompt tokens of all requests.
func (s *Stack) Prompt() int64 { return s.prompt }

// Blocks returns how many blocks a cache without bound holds: none larger hits more.
func (s *Stack) Blocks() int64 { return s.stored << s.rate }

// Hits returns how many prompt tokens an LRU cache of capacity blocks had.
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
