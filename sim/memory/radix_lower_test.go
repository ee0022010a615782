package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// A node of the tree is not reused until its chunks have been saved, written as they enter or as
// they are hit.
func TestLawNodesAreHeldWhileTheirChunksAreSaved(t *testing.T) {
	for _, hits := range []int{0, 1} {
		r := NewRadix(6, 4, 0, &Lower{Chunk: 2, DRAM: 4, Eviction: LRU, Hits: hits})
		content := &prefix.Content{Prompt: []prefix.Piece{{ID: 7, Tokens: 20}}}
		var grants []*Grant
		serve := func() {
			g := &Grant{}
			g.Reset(content, 20, 20, 4, uint64(len(grants)))
			grants = append(grants, g)
			r.Plan(10)
			r.Match(g, 20)
			if !r.Admit(g, 20, 20) {
				t.Fatalf("20 tokens are not granted in %d free pages", 6-r.Used())
			}
			r.Release(g, true)
		}
		check := func(used int64) {
			t.Helper()
			if err := r.Check(slices.Values(grants)); err != nil {
				t.Fatal(err)
			}
			if got := r.Used(); got != used {
				t.Fatalf("%d hits: %d pages are locked, want %d", hits, got, used)
			}
		}
		locked := int64(5) // the node is locked whole
		serve()
		if hits > 0 {
			check(0)
			serve()
			locked = 4 // that which ends before the last token
		}
		if dram, _ := r.Writes(); dram != 2 {
			t.Fatalf("%d hits: %d chunks are written, want 2", hits, dram)
		}
		check(locked)
		if _, ok := r.Kept(); ok {
			t.Error("it is known until when, and no save has begun")
		}
		r.Written(30, 30)
		if at, ok := r.Kept(); !ok || at != 30 {
			t.Errorf("nodes are unlocked at %v, %v", at, ok)
		}
		r.Plan(29)
		check(locked)
		r.Plan(30)
		check(0)
	}
}

// Whatever requests do, a tree over tiers is in order, loads what it found, and under LRU loses the
// ends of texts first: a chunk of DRAM follows one that is there or in HBM, whether chunks are
// written through or back.
func TestLawTiersBelowATreeLoseEndsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		l := &Lower{Chunk: n("chunk", 1, 3), DRAM: int64(n("dram", 1, 12)), Eviction: LRU,
			Back: rapid.Bool().Draw(t, "back"), Async: rapid.Bool().Draw(t, "async")}
		r := NewRadix(int64(n("pages", 6, 24)), n("page", 1, 3), 0, l)
		w := &world{tree: r, live: map[int]*pair{}}
		for step := range n("steps", 1, 60) {
			w.now += des.Time(n("time", 0, 5))
			r.Plan(w.now)
			w.act(t, n("request", 0, 5), n("what", 0, 9), uint64(step+1))
			if err := r.Check(w.grants); err != nil {
				t.Fatal(err)
			}
			if n("saves", 0, 2) == 0 {
				at := w.now + des.Time(n("save", 0, 5))
				r.Written(at, at)
			}
			w.chained(t)
		}
	})
}

// world is requests of a tree, all earlier texts, and the loading requests.
type world struct {
	tree    *Radix
	live    map[int]*pair
	now     des.Time
	texts   []*Grant
	loading []*pair
}

func (w *world) grants(yield func(*Grant) bool) {
	for _, p := range w.live {
		if !yield(&p.grant) {
			return
		}
	}
}

// act does one thing with a request: it arrives, begins or goes on, lands, or is released.
func (w *world) act(t *rapid.T, id, what int, own uint64) {
	r, p := w.tree, w.live[id]
	if p == nil {
		p = drawPair(t, own)
		w.live[id] = p
		w.texts = append(w.texts, &p.grant)
		return
	}
	g := &p.grant
	if i := slices.Index(w.loading, p); i >= 0 {
		w.loading = slices.Delete(w.loading, i, i+1)
		r.Landed(g)
		return
	}
	b := &g.branch
	if b.last != nil && what < 2 {
		r.Release(g, what == 0)
		if p.tokens = 0; what == 0 {
			delete(w.live, id)
		}
		return
	}
	if p.tokens < p.target && (b.last == nil || p.tokens == 0) {
		p.tokens = r.Match(g, p.target)
		found := g.load
		loads, ok := r.Fetch(g)
		switch {
		case loads && ok:
			w.loading = append(w.loading, p)
			if g.Loaded() != found {
				t.Fatalf("%+v is loaded, %+v was found", g.Loaded(), found)
			}
			fallthrough
		case loads:
			p.tokens = 0
			return
		}
	}
	more := min(p.tokens+rapid.IntRange(1, 8).Draw(t, "tokens"), len(p.naive.text))
	if p.tokens < p.target {
		more = min(more, p.target)
	}
	switch {
	case r.Grow(g, more, more):
		p.tokens = more
	case b.last == nil:
		p.tokens = 0
	}
}

// chained finds every chunk of DRAM behind one that is there or in HBM.
func (w *world) chained(t *rapid.T) {
	r := w.tree
	there := func(key uint64) bool { return r.lower.dram.index.Find(r.lower.dram.keys, key) > 0 }
	for _, table := range w.texts {
		var b branch
		b.name(table, r.page)
		resident := 0
		for at := r.root; resident < len(b.keys); {
			child := at.children[b.keys[resident]]
			if child == nil {
				break
			}
			k := 0
			for k < len(child.keys) && resident+k < len(b.keys) &&
				child.keys[k] == b.keys[resident+k] {
				k++
			}
			if resident += k; k < len(child.keys) {
				break
			}
			at = child
		}
		gone := false
		for i := r.lower.Chunk; i <= len(b.keys); i += r.lower.Chunk {
			has := there(b.keys[i-1])
			if gone && has {
				t.Fatalf("pages to %d are in DRAM, and some before are nowhere; %d are in HBM", i, resident)
			}
			gone = gone || !has && i > resident
		}
	}
}
