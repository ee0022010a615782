package kv

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// mirror is the table of a device, by handle, group and block, that hears of the
// cache only what Changes and Missed report.
type mirror map[[3]int32]uint32

func (m mirror) lose(t fatal, refs []BlockRef) {
	for _, r := range refs {
		at := [3]int32{r.Seq, r.Group, r.Block}
		if slot, ok := m[at]; !ok || slot != r.Slot {
			t.Fatalf("%+v is evicted, the mirror has it in slot %d (%v)", r, slot, ok)
		}
		delete(m, at)
	}
}

func (m mirror) get(t fatal, refs []BlockRef) {
	for _, r := range refs {
		at := [3]int32{r.Seq, r.Group, r.Block}
		if slot, ok := m[at]; ok {
			t.Fatalf("%+v gets a slot, the mirror has it in %d", r, slot)
		}
		m[at] = r.Slot
	}
}

// fatal is a test or one of its random runs.
type fatal interface {
	Fatalf(format string, args ...any)
}

// follow hears what the last Fill and those before it have changed, in the order
// in which a device acts on it, and compares the mirror with the cache. It
// returns how many evictions lay before the Fill, and all.
func (m mirror) follow(t fatal, c *Cache) (before, all int) {
	seated, evicted, before := c.Changes()
	m.lose(t, evicted[:before])
	m.get(t, seated)
	m.lose(t, evicted[before:])
	m.get(t, c.Missed())
	all = len(evicted)
	c.ForgetChanges()
	if seated, evicted, n := c.Changes(); len(seated)+len(evicted)+n > 0 {
		t.Fatalf("%v, %v and %d are not forgotten", seated, evicted, n)
	}
	want := mirror{}
	for _, s := range c.seqs {
		for i, mark := range s.marks {
			if s.live && mark.resident() {
				want[[3]int32{s.id, c.Sample.Groups[i/s.cap], int32(i % s.cap)}] = s.slots[i]
			}
		}
	}
	if !maps.Equal(m, want) {
		t.Fatalf("the mirror is\n%v, the cache\n%v", m, want)
	}
	return before, all
}

func (m mirror) forget(s *Seq) {
	maps.DeleteFunc(m, func(at [3]int32, _ uint32) bool { return at[0] == s.id })
}

// hear lets the mirror follow, if there is one.
func (x *script) hear() {
	if x.mirror != nil {
		before, all := x.mirror.follow(x.t, x.c)
		x.before, x.during = x.before+before, x.during+all-before
	}
}

// reserve draws how much of HBM a request's metadata takes, which may evict.
func (x *script) reserve(s *Seq) {
	if err := x.c.Reserve(s, rapid.Int64Range(0, x.spare/3).Draw(x.t, "reserved")); err != nil {
		x.t.Fatal(err)
	}
}

// Changes and Missed suffice to mirror the cache's slots, with evictions one by
// one, many at once, and between steps, and requests that go.
func TestChangesMirrorSlots(t *testing.T) {
	before, during := 0, 0
	check := func(t *rapid.T) {
		x := newScript(t, Config{
			Eviction: rapid.SampledFrom([]string{LRU, FIFO, CLOCK, SIEVE}).Draw(t, "eviction"),
			PerLayer: rapid.Bool().Draw(t, "per layer"), Addressed: true, Tables: true,
			Microbatch: rapid.IntRange(0, 3).Draw(t, "microbatch"),
		})
		x.mirror = mirror{}
		x.run()
		before, during = before+x.before, during+x.during
	}
	rapid.Check(t, check)
	for range 20 { // few cases have evictions before a Fill
		if before > 0 && during > 0 {
			break
		}
		rapid.Check(t, check)
	}
	if before == 0 || during == 0 {
		t.Errorf("%d evictions before a Fill and %d in it; both are meant to happen", before, during)
	}
}

// What a request did before it went is not reported, and the order of the others' changes stays.
func TestChangesForgetWhoGoes(t *testing.T) {
	geo := small(1, 1)
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 12 * geo.BlockBytes,
		Eviction: LRU, Window: 2, Addressed: true, Tables: true})
	if err != nil {
		t.Fatal(err)
	}
	prefill := func(tokens int) *Seq {
		s := c.Open(100)
		c.BeginStep(nil)
		c.Extend(s, tokens)
		s.Pin(0)
		c.Write(c.layers[0], s)
		if _, err := c.Fill(c.layers[0]); err != nil {
			t.Fatal(err)
		}
		c.Saved(s, s.full)
		c.Unpin(s)
		return s
	}
	goes, stays := prefill(16), prefill(32)
	c.ForgetChanges()
	// four blocks of the first and two of the other
	if err := c.Reserve(stays, 6*geo.BlockBytes); err != nil {
		t.Fatal(err)
	}
	last := prefill(10) // three more, of which the third is open
	names := func(refs []BlockRef) (all [][2]int32) {
		for _, r := range refs {
			all = append(all, [2]int32{r.Seq, r.Block})
		}
		return all
	}
	check := func(seated, evicted [][2]int32, before int) {
		t.Helper()
		s, e, b := c.Changes()
		if !slices.Equal(names(s), seated) || !slices.Equal(names(e), evicted) || b != before {
			t.Fatalf("seated %v, evicted %v, %d before; want %v, %v, %d", names(s), names(e), b, seated,
				evicted, before)
		}
	}
	check([][2]int32{{2, 0}, {2, 1}, {2, 2}}, [][2]int32{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0},
		{1, 1}, {1, 2}, {1, 3}, {1, 4}}, 6)
	c.Free(goes)
	check([][2]int32{{2, 0}, {2, 1}, {2, 2}}, [][2]int32{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}, 2)
	c.Free(last)
	check(nil, [][2]int32{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}, 2)
	c.Free(stays)
	check(nil, nil, 0)
}
