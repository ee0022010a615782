package prefix

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Lower is the tiers below a pool's HBM: chunks of blocks in DRAM, and on SSD. A chunk has the key
// of its last block. What is loaded stays where it was; what comes from SSD is in DRAM then, too.
type Lower struct {
	Chunk     int   // blocks in a chunk
	DRAM, SSD int64 // chunks that each holds; 0: there is no such tier
	Eviction  string
	// Async has a request wait for its load while others run. Else it is loaded in its first step.
	Async bool
	// Back writes a chunk when it leaves the tier above. Else it is written as it comes into being,
	// or, with Hits above 0, when it has been hit so often in HBM.
	Back bool
	Hits int
	// Worth says whether tokens [from, to) of a prompt should be loaded, of them so many from SSD,
	// and not computed; nil: always.
	Worth func(from, to, ssd int) bool

	// Future is what Belady's order needs.
	Future *Future

	dram, ssd *tier
	now       des.Time // of the planning
	writes    []uint64 // chunks that leave HBM
	spills    []uint64 // chunks that SSD has yet to get
}

// Load is what a request has loaded from the tiers below.
type Load struct {
	Tokens int // in all
	SSD    int // of them, that come from there
}

// below is the state of HBM's blocks, or of a tree's pages, that the tiers below need.
type below[T any] struct {
	lower   *Lower   // nil: there is nothing below HBM
	hits    []uint8  // of each block, since it got its content; where chunks are written by hits
	ends    []bool   // blocks that end a chunk
	kept    holds[T] // what is being saved
	evicted int64    // blocks that lost their content
}

func newBelow[T any](lower *Lower, blocks int64) below[T] {
	if lower == nil {
		return below[T]{}
	}
	lower.begin()
	return below[T]{lower: lower, hits: make([]uint8, blocks), ends: make([]bool, blocks)}
}

// Writes returns how many chunks leave HBM for the tiers below, and how many come to SSD, since
// the last call of Written.
func (b *below[T]) Writes() (dram, ssd int) { return len(b.lower.writes), len(b.lower.spills) }

// Kept returns when what is being saved to the tiers below is given up next; ok is false where
// there is nothing, or that is not known.
func (b *below[T]) Kept() (at des.Time, ok bool) { return b.kept.next() }

// Lost returns how many blocks of HBM and chunks below have lost their content.
func (b *below[T]) Lost() (hbm, dram, ssd int64) {
	if b.lower != nil {
		dram, ssd = b.lower.dram.evicted, b.lower.ssd.evicted
	}
	return b.evicted, dram, ssd
}

func (l *Lower) begin() {
	l.dram = newTier(l.DRAM, l.Eviction)
	l.ssd = newTier(l.SSD, l.Eviction)
	if l.Eviction == Belady {
		l.dram.future, l.ssd.future = l.Future, l.Future
	}
}

// match continues a match of so many blocks below HBM, if there is anything, and returns how many
// of the first tokens the prefill has when it begins: those in HBM, and what its first step loads.
func (l *Lower) match(t *Table, blocks, blockTokens, target int) (tokens int) {
	tokens = blocks * blockTokens
	if l == nil {
		return tokens
	}
	t.load = l.find(t, blocks, blockTokens, target)
	l.findStored(t, tokens, target, blockTokens)
	if l.Async {
		return tokens
	}
	return tokens + t.load.Tokens
}

// find continues a match of so many blocks in the tiers below, for a prompt of which less than
// target tokens may be hit. It returns the tokens that end up in HBM.
func (l *Lower) find(t *Table, blocks, blockTokens, target int) (load Load) {
	size := l.Chunk * blockTokens
	chain := NewChain(t.pieces)
	from := blocks * blockTokens
	to := from
	t.chunks = t.chunks[:0]
	for end := from/size*size + size; end < target; end += size {
		key, ok := chain.Key(end)
		if !ok {
			break
		}
		i := l.dram.has(key, l.now)
		if i == 0 {
			if l.ssd.has(key, l.now) == 0 {
				break
			}
			load.SSD += end - to
		}
		t.chunks = append(t.chunks, key)
		to = end
	}
	if load.Tokens = to - from; to > from && l.Worth != nil && !l.Worth(from, to, load.SSD) {
		t.chunks = t.chunks[:0]
		return Load{}
	}
	return load
}

// findStored has a table load what is said to be in DRAM, where that is more than what is found.
func (l *Lower) findStored(t *Table, hit, target, blockTokens int) {
	to := min(t.stored, (target-1)/blockTokens*blockTokens)
	if to > hit+t.load.Tokens && (l.Worth == nil || l.Worth(hit, to, 0)) {
		t.load, t.chunks = Load{Tokens: to - hit}, t.chunks[:0]
	}
}

// take notes that a table's chunks are loaded: uses in the tiers, the end of the text first, so
// that its beginning was used last; those of SSD come into DRAM.
func (l *Lower) take(t *Table) {
	for i := len(t.chunks) - 1; i >= 0; i-- {
		key := t.chunks[i]
		if place := l.dram.has(key, l.now); place > 0 {
			l.dram.use(place)
			continue
		}
		if place := l.ssd.has(key, l.now); place > 0 {
			l.ssd.use(place)
		}
		if l.dram.put(key, l.now) && l.Back {
			l.spill(l.dram.last)
		}
	}
	t.chunks = t.chunks[:0]
}

// touch notes that a chunk is used in HBM, whether it has been written or not.
func (l *Lower) touch(key uint64) {
	for _, t := range []*tier{l.dram, l.ssd} {
		if place := t.index.find(t.keys, key); place > 0 {
			t.use(place)
		}
	}
}

// never is when a chunk has been written that is yet to be.
const never = des.Time(math.MaxInt64)

// write has a chunk of HBM come into DRAM, or where there is none to SSD, unless it is there, and
// returns whether it does.
func (l *Lower) write(key uint64) bool {
	first := l.dram
	if l.DRAM == 0 {
		first = l.ssd
	}
	if first.index.find(first.keys, key) > 0 {
		return false
	}
	if first.refuses(key) {
		if first == l.ssd || !l.spill(key) {
			return false
		}
		l.writes = append(l.writes, key)
		return true
	}
	l.writes = append(l.writes, key)
	evicts := first.put(key, never)
	switch {
	case l.DRAM == 0:
		l.spills = append(l.spills, key)
	case !l.Back:
		l.spill(key)
	case evicts:
		l.spill(l.dram.last)
	}
	return true
}

// spill has a chunk that DRAM has no longer come to SSD, unless it is there or refused, and returns
// whether it does.
func (l *Lower) spill(key uint64) bool {
	if l.SSD == 0 || l.ssd.index.find(l.ssd.keys, key) > 0 || l.ssd.refuses(key) {
		return false
	}
	l.ssd.put(key, never)
	l.spills = append(l.spills, key)
	return true
}

// written has chunks that were to be written be there from some time on.
func (t *tier) written(keys []uint64, ready des.Time) {
	for _, key := range keys {
		if i := t.index.find(t.keys, key); i > 0 && t.ready[i] == never {
			t.ready[i] = ready
		}
	}
}

// Plan sets the time at which what follows is planned.
func (p *Pool) Plan(now des.Time) {
	if p.lower != nil {
		p.lower.now = now
		p.kept.end(now, p.giveUp)
		p.parting.end(now, p.part)
	}
}

// Written has these chunks be in DRAM from one time on and on SSD from another.
func (p *Pool) Written(dram, ssd des.Time) {
	p.kept.saved(dram)
	p.parting.saved(dram)
	p.lower.written(dram, ssd)
}

func (l *Lower) written(dram, ssd des.Time) {
	l.dram.written(l.writes, dram)
	l.ssd.written(l.spills, ssd)
	l.writes, l.spills = l.writes[:0], l.spills[:0]
}
