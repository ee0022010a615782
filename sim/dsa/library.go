package dsa

import (
	"math"
	"slices"
	"sort"
	"sync"

	"sparseserve/sim/des"
)

// Scores is a stationary score process. A family is one realisation: a group
// of a request that keeps one family sees one consistent history of scores.
type Scores interface {
	// Fill writes the scores of candidate blocks 0..n-1 of one family over
	// Steps() steps to dst, step by step: dst[t*n+b].
	Fill(family, n int, dst []float32)
	Steps() int
}

// Library makes streams on demand, one for each family and context length,
// and keeps them. Context lengths lie on a grid of 1/16 spacing: a context of
// n candidates is served by the largest grid point up to n, so the youngest
// blocks (6 % at most) join the competition a little late. Safe for concurrent
// use; what it returns depends on nothing but its arguments.
type Library struct {
	scores   Scores
	policy   Policy
	families int
	grid     []int // candidate counts, ascending

	mu      sync.RWMutex
	streams map[int]*Stream // family*len(grid) + index

	scratch sync.Pool // *[]float32, score rows while a stream is made
}

// MaxCandidates is the longest context in blocks that streams can index.
const MaxCandidates = math.MaxUint16

// NewLibrary returns an empty library over the given process and policy.
func NewLibrary(scores Scores, policy Policy, families int) *Library {
	l := &Library{scores: scores, policy: policy, families: families, streams: map[int]*Stream{}}
	for n := policy.Limit() + 1; n <= MaxCandidates; n += max(1, n/16) {
		l.grid = append(l.grid, n)
	}
	return l
}

// Cursor is the place of one group of one request in the library.
type Cursor struct{ Family, Phase uint16 }

// CursorOf returns the place of a group, derived from the run's seed, the
// request and the group alone.
func (l *Library) CursorOf(seed uint64, request, group int) Cursor {
	h := des.Hash(seed, uint64(request), uint64(group), 0x5e1ec7)
	return Cursor{
		Family: uint16(h >> 32 % uint64(l.families)),
		Phase:  uint16(h & 0xffffffff % uint64(l.scores.Steps())),
	}
}

// Grid returns the grid index that serves a context of n candidate blocks, or
// -1 when the policy selects all of them.
func (l *Library) Grid(n int) int {
	return sort.SearchInts(l.grid, n+1) - 1
}

// Steps returns the length of every stream's circle.
func (l *Library) Steps() int { return l.scores.Steps() }

// Stream returns the stream of a family at a grid index, making it when it is
// asked for the first time.
func (l *Library) Stream(family, grid int) *Stream {
	key := family*len(l.grid) + grid
	l.mu.RLock()
	s := l.streams[key]
	l.mu.RUnlock()
	if s != nil {
		return s
	}
	s = l.make(family, l.grid[grid])
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.streams[key]; other != nil {
		return other
	}
	l.streams[key] = s
	return s
}

func (l *Library) make(family, n int) *Stream {
	steps := l.scores.Steps()
	buf, _ := l.scratch.Get().(*[]float32)
	if buf == nil {
		buf = new([]float32)
	}
	defer l.scratch.Put(buf)
	*buf = slices.Grow((*buf)[:0], steps*n)
	rows := (*buf)[:steps*n]
	l.scores.Fill(family, n, rows)
	return Record(n, steps, l.policy, func(t int) []float32 { return rows[t*n : (t+1)*n] })
}
