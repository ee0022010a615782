package memory

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plain is a Radix without a tree: runs of pages with all of their text from its beginning, in the
// order of their last use, searched from one end to the other.
type plain struct {
	page, keep, total int
	runs              []*stretch
	requests          map[int]*plainRequest
	evicted           int64
}

type stretch struct {
	text  string // from the beginning of the prompt to the run's end
	begin int    // where the run begins in it, in bytes
}

type plainRequest struct {
	text             string // a letter of four bytes a token
	target, computed int
	holds            bool
	held             string // text that it has in the runs
	owned            int    // pages besides
}

const letter = 4 // bytes of a rune of letters

func (p *plain) bytes(pages int) int     { return pages * p.page * letter }
func (p *plain) pages(tokens int) int    { return (tokens + p.page - 1) / p.page }
func (p *plain) pagesOf(text string) int { return len(text) / letter / p.page }
func (p *plain) size(r *stretch) int     { return p.pagesOf(r.text) - r.begin/p.bytes(1) }
func (p *plain) below(r *stretch) (some bool) {
	return slices.ContainsFunc(p.runs, func(o *stretch) bool {
		return o != r && o.begin == len(r.text) && strings.HasPrefix(o.text, r.text)
	})
}

func (p *plain) locked(r *stretch) bool {
	for _, q := range p.requests {
		if q.holds && strings.HasPrefix(q.held, r.text) {
			return true
		}
	}
	return false
}

// count returns the free pages and the evictable pages.
func (p *plain) count() (free, evictable int) {
	free = p.total
	for _, r := range p.runs {
		free -= p.size(r)
		if !p.locked(r) {
			evictable += p.size(r)
		}
	}
	for _, q := range p.requests {
		free -= q.owned
	}
	return free, evictable
}

// walk returns how much of a text the runs have, and uses them.
func (p *plain) walk(text string) (at int) {
	for {
		i := slices.IndexFunc(p.runs, func(r *stretch) bool {
			end := at + p.bytes(1)
			return r.begin == at && len(text) >= end && len(r.text) >= end && r.text[:end] == text[:end]
		})
		if i < 0 {
			return at
		}
		r := p.runs[i]
		for at+p.bytes(1) <= min(len(r.text), len(text)) &&
			r.text[at:at+p.bytes(1)] == text[at:at+p.bytes(1)] {
			at += p.bytes(1)
		}
		if at < len(r.text) { // the first part is new
			p.runs = append(p.runs, &stretch{r.text[:at], r.begin})
			r.begin = at
			return at
		}
		p.runs = append(slices.Delete(p.runs, i, i+1), r)
	}
}

func (p *plain) enter(q *plainRequest, pages int) {
	text := q.text[:p.bytes(pages)]
	q.owned -= pages - p.pagesOf(q.held)
	if had := p.walk(text); had < len(text) {
		p.runs = append(p.runs, &stretch{text, had})
	}
	q.held = text
}

func (p *plain) evict() {
	for i, r := range p.runs {
		if !p.locked(r) && !p.below(r) {
			p.evicted += int64(p.size(r))
			p.runs = slices.Delete(p.runs, i, i+1)
			return
		}
	}
	panic("nothing can be evicted")
}

func (p *plain) grant(q *plainRequest, found, tokens, now, keep int) bool {
	begins := !q.holds
	if begins {
		q.holds, q.held = true, q.text[:found]
	} else if done := min(q.computed, q.target) / p.page; p.bytes(done) > len(q.held) &&
		q.computed <= q.target {
		p.enter(q, done)
	}
	need := max(0, p.pages(tokens)-p.pagesOf(q.held)-q.owned)
	free, evictable := p.count()
	if free+evictable-need < keep && (begins || need > 0) {
		q.holds = !begins
		return false
	}
	for ; free < need; free, _ = p.count() {
		p.evict()
	}
	q.owned += need
	q.computed = now
	return true
}

func (p *plain) release(q *plainRequest, ended bool) {
	if pages := q.computed / p.page; ended && p.bytes(pages) > len(q.held) {
		p.enter(q, pages)
	}
	q.holds, q.held, q.owned, q.computed = false, "", 0, 0
}

// Whatever requests do, a tree finds, grants and evicts what runs without a tree do.
func TestRadixIsThePlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		total, page := n("pages", 4, 24), n("page", 1, 4)
		share := float64(n("watermark", 0, 3)) / 10
		tree := NewRadix(int64(total), page, share, nil)
		ref := &plain{page: page, keep: int(share * float64(total)), total: total,
			requests: map[int]*plainRequest{}}
		live := map[int]*pair{}
		for step := range n("steps", 1, 60) {
			id := n("request", 0, 5)
			p := live[id]
			if p == nil {
				p = drawPair(t, uint64(step))
				live[id] = p
				ref.requests[id] = &plainRequest{text: string(p.naive.text), target: p.target}
			} else if gone := actPlain(t, tree, ref, p, ref.requests[id], n("what", 0, 9)); gone {
				delete(live, id)
				delete(ref.requests, id)
			}
			free, evictable := ref.count()
			if tree.free != free || tree.evictable != evictable || tree.evicted != ref.evicted {
				t.Fatalf("%d pages free, %d to evict, %d evicted; want %d, %d and %d", tree.free,
					tree.evictable, tree.evicted, free, evictable, ref.evicted)
			}
			if err := tree.Check(func(yield func(*Grant) bool) {
				for _, p := range live {
					if !yield(&p.grant) {
						return
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// actPlain does one thing with a request of both and returns whether it is gone.
func actPlain(t *rapid.T, tree *Radix, ref *plain, p *pair, q *plainRequest, what int) bool {
	g, found := &p.grant, 0
	if q.holds && what < 2 {
		tree.Release(g, what == 0)
		ref.release(q, what == 0)
		return what == 0
	}
	if !q.holds {
		limit := ref.bytes((p.target - 1) / ref.page)
		if g.at != tree.version { // else it is known, and nothing is used
			found = ref.walk(q.text[:limit])
		} else {
			for _, r := range ref.runs { // nodes that the walk before did not split
				if len(r.text) <= limit && strings.HasPrefix(q.text, r.text) {
					found = max(found, len(r.text))
				}
			}
		}
		if got := tree.Match(g, p.target); got != found/letter {
			t.Fatalf("%d tokens are found, want %d", got, found/letter)
		}
		p.tokens = found / letter
	}
	more := min(p.tokens+rapid.IntRange(1, 8).Draw(t, "tokens"), len(p.naive.text))
	if p.tokens < p.target {
		more = min(more, p.target) // a prompt before its output
	}
	var got, want bool
	held, room := q.holds, tree.Room(g, more)
	if what < 6 {
		got, want = tree.Grow(g, more, more), ref.grant(q, found, more, more, 0)
	} else {
		got = tree.Admit(g, max(p.target, more), more)
		want = ref.grant(q, found, max(p.target, more), more, ref.keep)
	}
	if got != want {
		t.Fatalf("%d tokens are granted: %v, want %v", more, got, want)
	}
	// A request that has begun may give pages up first, namely duplicates of the tree's pages.
	if what < 6 && (room && !want || !held && room != want) {
		t.Fatalf("there is room for %d tokens: %v, want %v", more, room, want)
	}
	if got {
		p.tokens = more
	}
	return false
}
