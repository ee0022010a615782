package memory

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// naive is a Pool that writes its texts out and searches for everything.
type naive struct {
	size, keep int
	refs       []int
	queue      []int    // blocks without a holder
	known      []int    // blocks with content, in the order in which they got it
	texts      []string // of each block, from the request's first token on
	evicted    int64
}

func newNaive(total, size, keep int) *naive {
	n := &naive{size: size, keep: keep, refs: make([]int, total), texts: make([]string, total)}
	for b := range total {
		n.queue = append(n.queue, b)
	}
	return n
}

// naiveTable is a request of a naive pool: its text, a letter a token, and its blocks.
type naiveTable struct {
	text   []rune
	blocks []int
	full   int
}

func (t *naiveTable) upTo(tokens int) string { return string(t.text[:tokens]) }

func (n *naive) match(t *naiveTable, target int) (hit []int) {
	for to := n.size; to < target; to += n.size {
		i := slices.IndexFunc(n.known, func(b int) bool { return n.texts[b] == t.upTo(to) })
		if i < 0 {
			break
		}
		hit = append(hit, n.known[i])
	}
	return hit
}

func (n *naive) grant(t *naiveTable, hit []int, tokens, now, keep int) bool {
	need, left := (tokens+n.size-1)/n.size-len(t.blocks), slices.Clone(n.queue)
	if len(t.blocks) == 0 {
		need -= len(hit)
		left = slices.DeleteFunc(left, func(b int) bool { return slices.Contains(hit, b) })
	}
	if need > 0 && len(left)-need < keep || len(t.blocks) == 0 && len(left)-need < keep {
		return false
	}
	if len(t.blocks) == 0 {
		for _, b := range hit {
			n.refs[b]++
		}
		t.blocks, t.full, n.queue = slices.Clone(hit), len(hit), left
	}
	for ; need > 0; need-- {
		b := n.queue[0]
		n.queue = n.queue[1:]
		if i := slices.Index(n.known, b); i >= 0 {
			n.known = slices.Delete(n.known, i, i+1)
			n.evicted++
		}
		n.refs[b] = 1
		t.blocks = append(t.blocks, b)
	}
	for ; t.full < now/n.size; t.full++ {
		b := t.blocks[t.full]
		n.texts[b] = t.upTo((t.full + 1) * n.size)
		n.known = append(n.known, b)
	}
	return true
}

func (n *naive) release(t *naiveTable) {
	for _, b := range slices.Backward(t.blocks) {
		if n.refs[b]--; n.refs[b] == 0 {
			n.queue = append(n.queue, b)
		}
	}
	t.blocks, t.full = nil, 0
}

// pair is one request of both pools.
type pair struct {
	grant          Grant
	naive          naiveTable
	target, tokens int
}

// Whatever requests do, a pool finds, grants and evicts what one does that writes its texts out.
func TestPoolIsTheNaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		total, size := n("blocks", 4, 24), n("size", 1, 4)
		share := float64(n("watermark", 0, 3)) / 10
		pool := NewPool(int64(total), size, share, nil)
		ref := newNaive(total, size, int(share*float64(total)))
		live := map[int]*pair{}
		for step := range n("steps", 1, 60) {
			switch id := n("request", 0, 5); {
			case live[id] == nil:
				live[id] = drawPair(t, uint64(step))
			default:
				act(t, pool, ref, live[id], n("what", 0, 9))
				if len(live[id].grant.blocks) == 0 && n("gone", 0, 2) == 0 {
					delete(live, id)
				}
			}
			if pool.Used() != int64(total-len(ref.queue)) || pool.evicted != ref.evicted {
				t.Fatalf("%d blocks used and %d evicted, want %d and %d", pool.Used(), pool.evicted,
					total-len(ref.queue), ref.evicted)
			}
			if err := pool.Check(func(yield func(*Grant) bool) {
				for p := range maps.Values(live) {
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

// drawPair draws a request whose prompt has few texts, one possibly cut.
func drawPair(t *rapid.T, own uint64) *pair {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	content, p := &prefix.Content{}, &pair{}
	for range n("pieces", 0, 3) {
		piece := prefix.Piece{ID: uint64(n("text", 1, 2)), Tokens: n("length", 1, 9)}
		content.Prompt = append(content.Prompt, piece)
		p.naive.text = append(p.naive.text, letters(int(piece.ID), piece.Tokens)...)
	}
	content.Answer = uint64(n("answer", 0, 1)) * 3
	more, output := n("more", 1, 4), n("output", 1, 9)
	p.target = len(p.naive.text) + more
	p.naive.text = append(p.naive.text, letters(100+int(own), more)...)
	if content.Answer == 0 {
		p.naive.text = append(p.naive.text, letters(200+int(own), output)...)
	} else {
		p.naive.text = append(p.naive.text, letters(3, output)...)
	}
	p.grant.Reset(content, p.target, p.target, output, own)
	return p
}

// letters writes n tokens of a text: its name and the places in it.
func letters(text, tokens int) (s []rune) {
	for i := range tokens {
		s = append(s, rune(text*16+i+0x10000))
	}
	return s
}

func act(t *rapid.T, pool *Pool, ref *naive, p *pair, what int) {
	g := &p.grant
	if len(g.blocks) > 0 && what == 0 {
		pool.Release(g, true)
		ref.release(&p.naive)
		return
	}
	var hit []int
	if len(g.blocks) == 0 {
		hit = ref.match(&p.naive, p.target)
		if got := pool.Match(g, p.target); got != len(hit)*ref.size {
			t.Fatalf("%d tokens are found, want %d", got, len(hit)*ref.size)
		}
		p.tokens = len(hit) * ref.size
	}
	more := min(p.tokens+rapid.IntRange(1, 8).Draw(t, "tokens"), len(p.naive.text))
	var got, want bool
	room := pool.Room(g, more)
	if what < 5 {
		got, want = pool.Grow(g, more, more), ref.grant(&p.naive, hit, more, more, 0)
	} else {
		got = pool.Admit(g, max(p.target, more), more)
		want = ref.grant(&p.naive, hit, max(p.target, more), more, ref.keep)
	}
	if got != want {
		t.Fatalf("%d tokens are granted: %v, want %v", more, got, want)
	}
	if what < 5 && room != want {
		t.Fatalf("there is room for %d tokens: %v, want %v", more, room, want)
	}
	if got {
		p.tokens = more
	}
}
