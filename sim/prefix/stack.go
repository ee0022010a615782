package prefix

import "slices"

// Stack holds the prefixes of requests as LRU caches of all capacities at once do, by stack
// distances (Mattson et al. 1970): one pass over a trace gives the hits of every capacity. Requests
// are served one after another; each leaves the full blocks of its prompt and of its output but
// the last token, which no step has computed. The first block of a request is the last to go, so
// that a cache never has a block without those before it.
//
// It is a tree of pieces, in runs that have always been used together. A request costs
// O(log n) a run, whatever its tokens.
type Stack struct {
	block int // tokens
	runs  map[edge]*run
	root  run
	slots fenwick
	order []*run // by slot; nil: used again since
	path  []*run // of the request that is served

	hits   []hit
	prompt int64 // tokens of all prompts
	stored int64 // blocks of all runs

	// Remember keeps the requests that Serve is given, for Optimum, up to mostUses.
	Remember bool
	requests []remembered
	uses     int // of runs, by the requests that are kept
}

// mostUses bounds what Optimum goes over, and so its memory, 72 bytes a use: a conversation of n
// turns has n^2.
const mostUses = 4 << 20

// remembered is a request of known content.
type remembered struct {
	content        *Content
	prompt, output int
}

// edge names a run by what is before it and its first token.
type edge struct {
	before *run
	id     uint64
	offset int
}

// run is tokens that follow one another in one place.
type run struct {
	edge
	start, end int // tokens from the beginning of the prompt
	slot       int // when it was used last, by order
}

// hit is blocks of a prompt that stood one below the other in the stack, under above others.
type hit struct{ above, blocks int64 }

// NewStack returns empty caches of blocks of so many tokens.
func NewStack(block int) *Stack {
	return &Stack{block: block, runs: map[edge]*run{}}
}

// Serve serves a request of so many tokens and returns those of its prompt that a cache without
// bound had: whole blocks, and never the last token, which is computed for its logits. Content may
// be nil or end early: what is not known fills caches and hits nothing.
func (s *Stack) Serve(c *Content, prompt, output int) (cached int) {
	s.prompt += int64(prompt)
	all, most := prompt+output-1, (prompt-1)/s.block
	s.path = append(s.path[:0], &s.root)
	if c != nil {
		for _, p := range c.Prompt {
			s.follow(p.ID, min(p.Tokens, prompt-s.last().end), most, &cached)
		}
		if c.Answer != 0 && s.last().end == prompt {
			s.follow(c.Answer, all-prompt, most, &cached)
		}
	}
	if n := s.last(); n.end < all { // of no name
		s.add(&run{start: n.end, end: all})
	}
	s.touch()
	if c != nil && s.Remember {
		s.remember(remembered{c, prompt, output})
	}
	return cached * s.block
}

// remember keeps a request while all that are kept have at most mostUses; beyond, none is.
func (s *Stack) remember(r remembered) {
	if s.uses += len(s.path) - 1; s.uses > mostUses {
		s.requests = nil
		return
	}
	s.requests = append(s.requests, r)
}

// Remembers says whether all requests so far are kept.
func (s *Stack) Remembers() bool { return s.Remember && s.uses <= mostUses }

func (s *Stack) last() *run { return s.path[len(s.path)-1] }

// follow goes on by so many tokens of a text, on runs that there are or new ones. Blocks that
// there were are hits, up to the given one of the prompt. After a new run, or a part of one, there
// are none: nothing has ever followed it.
func (s *Stack) follow(id uint64, tokens, most int, cached *int) {
	for offset := 0; offset < tokens; {
		e := edge{s.last(), id, offset}
		r, left := s.runs[e], tokens-offset
		if r == nil {
			r = &run{edge: e, start: e.before.end, end: e.before.end + left}
			s.runs[e] = r
			s.add(r)
			return
		}
		above := s.stored - s.slots.sum(r.slot)
		if r.end-r.start > left {
			r = s.split(r, left)
		}
		if n := min(r.end/s.block, most) - r.start/s.block; n > 0 {
			s.hit(above, int64(n))
			*cached += n
		}
		s.path = append(s.path, r)
		offset += r.end - r.start
	}
}

// hit notes a hit. Runs of a prompt that were used together last, as all turns of a session but the
// newest, stand one below the other: they are one hit.
func (s *Stack) hit(above, blocks int64) {
	if n := len(s.hits); n > 0 && s.hits[n-1].above+s.hits[n-1].blocks == above {
		s.hits[n-1].blocks += blocks
		return
	}
	s.hits = append(s.hits, hit{above, blocks})
}

// blocks are those whose last token is in the run.
func (s *Stack) blocks(r *run) int64 { return int64(r.end/s.block - r.start/s.block) }

// split cuts a run after so many tokens and returns its head, which takes its name. The rest keeps
// its place in the stack.
func (s *Stack) split(r *run, tokens int) *run {
	head := &run{edge: r.edge, start: r.start, end: r.start + tokens, slot: -1}
	s.slots.add(r.slot, -s.blocks(head))
	s.runs[r.edge] = head
	r.edge, r.start = edge{head, r.id, r.offset + tokens}, head.end
	s.runs[r.edge] = r
	return head
}

// add stores a new run, the next of the path.
func (s *Stack) add(r *run) {
	r.slot = -1
	s.stored += s.blocks(r)
	s.path = append(s.path, r)
}

// touch moves the path to the top of the stack, its beginning uppermost.
func (s *Stack) touch() {
	if len(s.order)+len(s.path) > len(s.slots) {
		s.compact()
	}
	for _, r := range slices.Backward(s.path[1:]) {
		n := s.blocks(r)
		if r.slot >= 0 {
			s.slots.add(r.slot, -n)
			s.order[r.slot] = nil
		}
		r.slot = len(s.order)
		s.order = append(s.order, r)
		s.slots.add(r.slot, n)
	}
}

// compact closes the gaps of order and makes room for as much again.
func (s *Stack) compact() {
	s.order = slices.DeleteFunc(s.order, func(r *run) bool { return r == nil })
	s.slots = make(fenwick, 2*(len(s.order)+len(s.path))+1024)
	for i, r := range s.order {
		r.slot = i
		s.slots.add(i, s.blocks(r))
	}
}

// Prompt returns the prompt tokens of all requests.
func (s *Stack) Prompt() int64 { return s.prompt }

// Blocks returns how many blocks a cache without bound holds: none larger hits more.
func (s *Stack) Blocks() int64 { return s.stored }

// Hits returns how many prompt tokens an LRU cache of so many blocks had.
func (s *Stack) Hits(capacity int64) int64 {
	blocks := int64(0)
	for _, h := range s.hits {
		blocks += max(0, min(h.blocks, capacity-h.above))
	}
	return blocks * int64(s.block)
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
