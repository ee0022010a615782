package prefix

import "github.com/sparseserve/sparseserve/sim/des"

// Names of the orders in which chunks leave a tier.
const (
	LRU   = "lru"
	FIFO  = "fifo"
	CLOCK = "clock"
	SIEVE = "sieve"
	// Belady is no order but what the requests to come use last (future.go).
	Belady = "belady"
)

// Evictions names the orders in which chunks leave a tier: least recently used first; first in,
// first out; CLOCK, which gives those used since another round; SIEVE, whose hand leaves those in
// their places (Zhang et al., NSDI'24); those whose next use is furthest ahead (Belady 1966).
func Evictions() []string { return []string{LRU, FIFO, CLOCK, SIEVE, Belady} }

// tier is memory below HBM: chunks of KV by key, in one list, oldest first. Its arrays grow with
// what it holds.
type tier struct {
	order    string
	capacity int
	keys     []uint64
	ready    []des.Time // when the chunk has been written
	used     []bool     // since it entered or the hand passed
	next     []int32    // of the list; the first element is its ends
	prev     []int32
	hand     int32 // of SIEVE; 0: at the oldest
	index    index
	evicted  int64
	last     uint64 // key that was evicted last

	future *Future  // of Belady's
	due    []uint64 // by place: its next use
	heap   []int32  // places, that of the last next use first
	at     []int32  // by place: where in the heap
}

// newTier returns an empty tier. Place 0 is no chunk.
func newTier(capacity int64, order string) *tier {
	return &tier{order: order, capacity: int(capacity), index: newIndex(4), keys: make([]uint64, 1),
		ready: make([]des.Time, 1), used: make([]bool, 1), next: make([]int32, 1), prev: make([]int32, 1)}
}

// has returns the place of a chunk that has been written by now; 0: there is none.
func (t *tier) has(key uint64, now des.Time) int32 {
	if i := t.index.find(t.keys, key); i > 0 && t.ready[i] <= now {
		return i
	}
	return 0
}

// use notes that a chunk is read.
func (t *tier) use(i int32) {
	if t.order == LRU {
		t.unlink(i)
		t.link(i)
	}
	t.used[i] = true
}

// put adds a chunk that will have been written at some time, unless it is there or refused, and
// reports whether another had to leave.
func (t *tier) put(key uint64, ready des.Time) (evicts bool) {
	if t.capacity == 0 || t.index.find(t.keys, key) > 0 || t.refuses(key) {
		return false
	}
	var i int32
	if evicts = t.index.n == t.capacity; evicts {
		i = t.victim()
		t.last = t.keys[i]
		t.index.remove(t.keys, i)
		t.unlink(i)
		t.evicted++
	} else {
		i = int32(len(t.keys))
		t.keys, t.ready, t.used = append(t.keys, 0), append(t.ready, 0), append(t.used, false)
		t.next, t.prev = append(t.next, 0), append(t.prev, 0)
	}
	t.keys[i], t.ready[i], t.used[i] = key, ready, false
	t.index.insert(t.keys, i)
	t.link(i)
	t.date(i)
	return evicts
}

// victim returns the chunk that leaves next.
func (t *tier) victim() int32 {
	switch t.order {
	case CLOCK:
		for i := t.next[0]; t.used[i]; i = t.next[0] {
			t.used[i] = false
			t.unlink(i)
			t.link(i)
		}
	case Belady:
		return t.heap[0]
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

func (t *tier) unlink(i int32) {
	next, prev := t.next[i], t.prev[i]
	t.next[prev], t.prev[next] = next, prev
}

// link makes a chunk the youngest.
func (t *tier) link(i int32) {
	last := t.prev[0]
	t.next[last], t.prev[i], t.next[i], t.prev[0] = i, last, 0, i
}
