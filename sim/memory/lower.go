package memory

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Lower is the cache tiers below HBM: chunks of blocks in DRAM and on SSD. The key of a chunk is
// the key of its last block. A load copies a chunk and keeps the source. A load from SSD also puts
// the chunk into DRAM.
type Lower struct {
	Chunk     int   // blocks per chunk
	DRAM, SSD int64 // capacity in chunks; 0: no such tier
	Eviction  string
	// Async makes a request wait for its load while other requests run. Otherwise the load is part of
	// the request's first step.
	Async bool
	// Back writes a chunk when it is evicted from the tier above. Otherwise a chunk is written when
	// it is complete or, with Hits above 0, after that many hits in HBM.
	Back bool
	Hits int
	// Worth reports whether to load tokens [from, to) of a prompt, ssd tokens from SSD, instead of
	// computing them; nil: always load.
	Worth func(from, to, ssd int) bool

	// Future holds the upcoming requests for Belady's eviction.
	Future *Future

	dram, ssd *tier
	now       des.Time // planning time
	writes    []uint64 // chunks to write from HBM
	spills    []uint64 // chunks to write to SSD
}

// Load counts the tokens that a request loads from the tiers below HBM.
type Load struct {
	Tokens int // total
	SSD    int // part that comes from SSD
}

// below is the state that the lower tiers keep about HBM blocks or tree pages.
type below[T any] struct {
	lower   *Lower   // nil: no tiers below HBM
	hits    []uint8  // by block, hits since it got its content; used with Lower.Hits
	ends    []bool   // by block, whether it ends a chunk
	kept    holds[T] // blocks or nodes held during a save
	evicted int64    // evicted blocks
}

func newBelow[T any](lower *Lower, blocks int64) below[T] {
	if lower == nil {
		return below[T]{}
	}
	lower.begin()
	return below[T]{lower: lower, hits: make([]uint8, blocks), ends: make([]bool, blocks)}
}

// Writes returns the number of chunks to write from HBM to the tiers below and the number to write
// to SSD since the last call of Written.
func (b *below[T]) Writes() (dram, ssd int) {
	if b.lower == nil {
		return 0, 0
	}
	return len(b.lower.writes), len(b.lower.spills)
}

// Written sets the times when the pending writes arrive in DRAM and on SSD.
func (b *below[T]) Written(dram, ssd des.Time) {
	b.kept.saved(dram)
	b.lower.written(dram, ssd)
}

// begins records the loads and the hits of a grant that begins with matched blocks. It calls keep
// for each chunk, blocks [from, to), whose hits have it written. Chunks are loaded before one that
// is written evicts them, and the end of a text is used and written first, so that LRU loses it
// first.
func (b *below[T]) begins(g *Grant, matched []int32, key func(i int) uint64,
	keep func(from, to int)) {
	l := b.lower
	if l == nil {
		return
	}
	l.begins(g.own)
	l.take(g)
	g.load, g.loaded = Load{}, g.load
	for to := len(matched) / l.Chunk * l.Chunk; to > 0; to -= l.Chunk {
		last := matched[to-1]
		l.touch(key(to - 1))
		if b.hits[last] < math.MaxUint8 {
			b.hits[last]++
		}
		if b.ends[last] && int(b.hits[last]) == l.Hits && l.write(key(to-1)) {
			keep(to-l.Chunk, to)
		}
	}
}

// fetches reports whether a grant that holds no blocks waits for what it loads.
func (b *below[T]) fetches(g *Grant) bool {
	return b.lower != nil && b.lower.Async && g.load.Tokens > 0
}

// Kept returns the time when the oldest save ends and its blocks are released. ok is false if there
// is none or the time is unknown.
func (b *below[T]) Kept() (at des.Time, ok bool) { return b.kept.next() }

// Lost returns the number of evicted HBM blocks and evicted chunks per tier.
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

// match extends an HBM match of the given blocks with chunks of the tiers below. It returns the
// number of leading tokens that the prefill can skip: the tokens in HBM plus, unless Async, the
// tokens that its first step loads.
func (l *Lower) match(g *Grant, blocks, blockTokens, target int) (tokens int) {
	tokens = blocks * blockTokens
	if l == nil {
		return tokens
	}
	g.load = l.find(g, blocks, blockTokens, target)
	l.findStored(g, tokens, target, blockTokens)
	if l.Async {
		return tokens
	}
	return tokens + g.load.Tokens
}

// find extends a match of the given blocks in the tiers below, for hits of less than target tokens.
// It returns the tokens to load.
func (l *Lower) find(g *Grant, blocks, blockTokens, target int) (load Load) {
	size := l.Chunk * blockTokens
	chain := prefix.NewChain(g.pieces)
	from := blocks * blockTokens
	to := from
	g.chunks = g.chunks[:0]
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
		g.chunks = append(g.chunks, key)
		to = end
	}
	if load.Tokens = to - from; to > from && l.Worth != nil && !l.Worth(from, to, load.SSD) {
		g.chunks = g.chunks[:0]
		return Load{}
	}
	return load
}

// findStored makes a grant load the tokens that the trace declares to be in DRAM, if they exceed
// the tokens found.
func (l *Lower) findStored(g *Grant, hit, target, blockTokens int) {
	to := min(g.stored, (target-1)/blockTokens*blockTokens)
	if to > hit+g.load.Tokens && (l.Worth == nil || l.Worth(hit, to, 0)) {
		g.load, g.chunks = Load{Tokens: to - hit}, g.chunks[:0]
	}
}

// take records the load of a grant's chunks. It updates their recency from the end of the text to
// its beginning, so that the beginning is most recent. Chunks from SSD enter DRAM.
func (l *Lower) take(g *Grant) {
	for i := len(g.chunks) - 1; i >= 0; i-- {
		key := g.chunks[i]
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
	g.chunks = g.chunks[:0]
}

// touch updates the recency of a chunk that is used in HBM. The chunk's write may still be pending.
func (l *Lower) touch(key uint64) {
	for _, t := range []*tier{l.dram, l.ssd} {
		if place := t.index.Find(t.keys, key); place > 0 {
			t.use(place)
		}
	}
}

// never is the ready time of a chunk whose write is pending.
const never = des.Time(math.MaxInt64)

// write puts a chunk of HBM into DRAM, or into SSD if there is no DRAM tier. It returns false if
// the chunk is already there or is refused.
func (l *Lower) write(key uint64) bool {
	first := l.dram
	if l.DRAM == 0 {
		first = l.ssd
	}
	if first.index.Find(first.keys, key) > 0 {
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

// spill writes a chunk to SSD. It returns false if the chunk is already there or is refused.
func (l *Lower) spill(key uint64) bool {
	if l.SSD == 0 || l.ssd.index.Find(l.ssd.keys, key) > 0 || l.ssd.refuses(key) {
		return false
	}
	l.ssd.put(key, never)
	l.spills = append(l.spills, key)
	return true
}

// written sets the ready time of chunks whose write was pending.
func (t *tier) written(keys []uint64, ready des.Time) {
	for _, key := range keys {
		if i := t.index.Find(t.keys, key); i > 0 && t.ready[i] == never {
			t.ready[i] = ready
		}
	}
}

// Plan sets the planning time and releases blocks whose saves have ended by then.
func (p *Pool) Plan(now des.Time) {
	if p.lower != nil {
		p.lower.now = now
		p.kept.end(now, p.giveUp)
	}
}

func (l *Lower) written(dram, ssd des.Time) {
	l.dram.written(l.writes, dram)
	l.ssd.written(l.spills, ssd)
	l.writes, l.spills = l.writes[:0], l.spills[:0]
}
