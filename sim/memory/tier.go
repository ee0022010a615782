package memory

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Eviction policies of a tier.
const (
	LRU   = "lru"
	FIFO  = "fifo"
	CLOCK = "clock"
	SIEVE = "sieve"
	// Belady evicts by the next use of upcoming requests (future.go).
	Belady = "belady"
)

// Evictions lists the eviction policies of a tier: least recently used; first in, first out; CLOCK,
// which gives used chunks another round; SIEVE, whose hand passes used chunks without moving them
// (Zhang et al., NSDI'24); Belady, which evicts the chunk with the furthest next use (Belady 1966).
func Evictions() []string { return []string{LRU, FIFO, CLOCK, SIEVE, Belady} }

// tier is a cache below HBM: chunks of KV by key in one list, oldest first. Its arrays grow with
// its content.
type tier struct {
	order    string
	capacity int
	keys     []uint64
	ready    []des.Time // time when the chunk's write ends
	used     []bool     // used since it entered or since the hand passed
	ring                // of places; place 0 is the end
	hand     int32      // hand of SIEVE; 0: at the oldest chunk
	index    prefix.Index
	evicted  int64
	last     uint64 // key of the last evicted chunk

	future *Future         // for Belady
	due    []uint64        // by place: next use of its chunk
	heap   des.Heap[int32] // of places, furthest next use first
	at     []int32         // by place: position in the heap
}

// newTier returns an empty tier. Place 0 holds no chunk.
func newTier(capacity int64, order string) *tier {
	t := &tier{order: order, capacity: int(capacity), index: prefix.NewIndex(4),
		keys: make([]uint64, 1), ready: make([]des.Time, 1), used: make([]bool, 1),
		ring: newRing()}
	t.heap.Before = func(a, b int32) bool { return t.due[a] > t.due[b] }
	t.heap.Moved = func(i int32, at int) { t.at[i] = int32(at) }
	return t
}

// has returns the place of a chunk whose write has ended by now, or 0.
func (t *tier) has(key uint64, now des.Time) int32 {
	if i := t.index.Find(t.keys, key); i > 0 && t.ready[i] <= now {
		return i
	}
	return 0
}

// use records a read of a chunk.
func (t *tier) use(i int32) {
	if t.order == LRU {
		t.unlink(i)
		t.append(i)
	}
	t.used[i] = true
}

// put adds a chunk whose write ends at the given time, unless it is present or refused. It reports
// whether another chunk was evicted.
func (t *tier) put(key uint64, ready des.Time) (evicts bool) {
	if t.capacity == 0 || t.index.Find(t.keys, key) > 0 || t.refuses(key) {
		return false
	}
	var i int32
	if evicts = t.index.Len() == t.capacity; evicts {
		i = t.victim()
		t.last = t.keys[i]
		t.index.Remove(t.keys, i)
		t.unlink(i)
		t.evicted++
	} else {
		i = int32(len(t.keys))
		t.keys, t.ready, t.used = append(t.keys, 0), append(t.ready, 0), append(t.used, false)
		t.grow()
	}
	t.keys[i], t.ready[i], t.used[i] = key, ready, false
	t.index.Insert(t.keys, i)
	t.append(i)
	t.date(i)
	return evicts
}

// victim returns the place of the chunk to evict next.
func (t *tier) victim() int32 {
	switch t.order {
	case CLOCK:
		for i := t.next[0]; t.used[i]; i = t.next[0] {
			t.used[i] = false
			t.unlink(i)
			t.append(i)
		}
	case Belady:
		return t.heap.Top()
	case SIEVE:
		i := t.hand
		for {
			if i == 0 {
				i = t.next[0]
			}
			if !t.used[i] {
				break
			}
			t.used[i] = false
			i = t.next[i]
		}
		t.hand = t.next[i]
		return i
	}
	return t.next[0]
}
