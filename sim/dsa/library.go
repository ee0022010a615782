package dsa

import (
	"math"
	"sort"
	"sync"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Scores is a stationary score process. A family is one realisation: a group that keeps one
// family sees one consistent history of scores. Classes differ in how sharply attention
// concentrates on high scores.
type Scores interface {
	// Steps is the number of steps after which a history repeats.
	Steps() int
	// Fill writes the scores of candidate blocks 0..n-1 of one family to the sheet, for the
	// sheet's steps.
	Fill(family, n int, s *Sheet)
	// Critical returns a function that computes one criticality of Fill's output: candidate b of
	// n at step t. The function is not safe for concurrent use.
	Critical(s *Sheet) func(family, n, b, t int) float32
	// Classes is the number of classes. Skew is the scale of a class: a block holds exp(skew *
	// score) of the attention, in arbitrary units.
	Classes() int
	Skew(class int) float64
	// Class returns the class of a KV head.
	Class(layer, head int) int
}

// Setting describes the group whose scores are computed.
type Setting struct {
	Digest  Digest // source of the criticality estimate
	Sinks   int    // blocks before the candidates
	Window  int    // blocks after them
	Queries int    // query heads that share the KV head; 0 = 1
	Apart   bool   // each query head selects for itself
}

// Sheet is the score matrix of one group over Steps steps, starting at step First of the cycle.
// Its owner keeps the buffers.
type Sheet struct {
	Setting
	Weighs   bool        // also fill Score, Kept and Skew
	First    int         // first step of the cycle
	Steps    int         // number of steps
	Critical []float32   // [steps][n]
	Each     [][]float32 // [query heads][steps][n], if query heads select separately
	Score    [][]float32 // [query heads][steps][n]
	Kept     []float32   // [steps][sinks+window]
	Skew     []float32   // [steps], multiplied by the skew of the class
}

// Library computes one cycle per family, class and context length on demand and caches it; for
// a policy that decides for whole layers it computes rankings. Context lengths form a grid of
// 1/16 spacing: a context of n candidates uses the largest grid point up to n, so the youngest
// blocks (6 % at most) become candidates a little late. Safe for concurrent use; results depend
// on the arguments alone.
type Library struct {
	scores   Scores
	policy   Policy
	sheet    Sheet // settings of a sheet, without buffers
	families int
	classes  int   // number of classes that the policy distinguishes
	grid     []int // candidate counts, ascending

	cycles   memo[contexts, []*Cycle] // by class
	recalls  memo[recallKey, []Recall]
	rankings memo[contexts, *Ranking]
	reuses   memo[reuseKey, *Reuse]

	scratch sync.Pool // *Sheet, in use while a cycle is computed
}

// contexts is the contexts of one family at a grid index.
type contexts struct{ family, grid int }

// recallKey adds a class of scores, reuseKey the buffer's capacity in candidates and the covered
// eighths of the context.
type recallKey struct {
	contexts
	class int
}
type reuseKey struct {
	recallKey
	slots, eighths int
}

// MaxCandidates is the longest context, in blocks, that a cycle can index.
const MaxCandidates = math.MaxUint16

// NewLibrary returns an empty library over the given process and policy.
func NewLibrary(scores Scores, policy Policy, setting Setting, families int) *Library {
	l := &Library{
		scores: scores, policy: policy, families: families, classes: 1,
		sheet: Sheet{Setting: setting, Weighs: policy.Weighs(), Steps: scores.Steps()},
	}
	if policy.Weighs() {
		l.classes = scores.Classes()
	}
	for n := policy.Limit() + 1; n <= MaxCandidates; n += max(1, n/16) {
		l.grid = append(l.grid, n)
	}
	return l
}

// Cursor is the position of one group of one request in the library.
type Cursor struct{ Family, Class, Phase uint16 }

// CursorOf returns the position of a group. It depends only on the run's seed, the request and
// the group.
func (l *Library) CursorOf(seed uint64, request, layer, head, kvHeads int) Cursor {
	h := des.Hash(seed, uint64(request), uint64(layer*kvHeads+head), 0x5e1ec7)
	c := Cursor{
		Family: uint16(h >> 32 % uint64(l.families)),
		Phase:  uint16(h & 0xffffffff % uint64(l.scores.Steps())),
	}
	c.Class = uint16(l.scores.Class(layer, head))
	return c
}

// Grid returns the grid index for a context of n candidate blocks, or -1 if the policy selects
// all candidates.
func (l *Library) Grid(n int) int {
	return sort.SearchInts(l.grid, n+1) - 1
}

// Steps returns the number of steps of every cycle.
func (l *Library) Steps() int { return l.scores.Steps() }

// Critical returns a function that computes the criticality, as the policy sees it, of
// candidate b of n for a cursor's group, the given number of steps after its start. The
// function is not safe for concurrent use.
func (l *Library) Critical() func(c Cursor, n, b, steps int) float32 {
	critical := l.scores.Critical(&l.sheet)
	last, grid := -1, -1
	return func(c Cursor, n, b, steps int) float32 {
		if n != last {
			if last, grid = n, n; l.Grid(n) >= 0 {
				grid = l.grid[l.Grid(n)]
			}
		}
		return critical(int(c.Family), grid, b, (int(c.Phase)+steps)%l.scores.Steps())
	}
}

// Cycle returns the cycle of a cursor's family and class at a grid index, and computes it on
// the first call. The policy must be ByHead.
func (l *Library) Cycle(c Cursor, grid int) *Cycle {
	family := int(c.Family)
	all := l.cycles.get(contexts{family, grid}, nil, func([]*Cycle) []*Cycle {
		return l.make(family, l.grid[grid])
	})
	return all[l.class(c)]
}

// class returns the class of a cursor, as far as the policy distinguishes classes.
func (l *Library) class(c Cursor) int { return min(int(c.Class), l.classes-1) }

// Reuse returns the misses of an LRU buffer with the given number of slots on a cursor's cycle.
// The buffer covers the first eighths of the candidates.
func (l *Library) Reuse(c Cursor, grid, slots, eighths int) *Reuse {
	key := reuseKey{recallKey{contexts{int(c.Family), grid}, l.class(c)}, slots, eighths}
	return l.reuses.get(key, nil, func(*Reuse) *Reuse {
		cycle := l.Cycle(c, grid)
		return NewReuse(cycle, slots, (cycle.Candidates*eighths+7)/8)
	})
}

// Make computes the cycles of contexts of from to to candidate blocks, so that a timed run does
// not include their cost. It does nothing if the policy decides for whole layers.
func (l *Library) Make(from, to int, do func(n int, f func(i int))) {
	if l.ByLayer() {
		return
	}
	first := max(0, l.Grid(from))
	do(max(0, l.Grid(to)-first+1)*l.families, func(i int) {
		l.Cycle(Cursor{Family: uint16(i % l.families)}, first+i/l.families)
	})
}

// make records the cycles of all classes together because they share the order of criticality.
func (l *Library) make(family, n int) []*Cycle {
	sheet := l.fill(family, n)
	defer l.scratch.Put(sheet)
	view := &View{}
	return recordAll(n, l.scores.Steps(), l.classes, l.policy.(ByHead), func(t, class int) *View {
		sheet.View(t, l.scores.Skew(class), view)
		view.Again = class > 0
		return view
	})
}

// fill returns a sheet of all steps; the caller returns it to scratch.
func (l *Library) fill(family, n int) *Sheet {
	sheet, _ := l.scratch.Get().(*Sheet)
	if sheet == nil {
		own := l.sheet
		sheet = &own
	}
	l.scores.Fill(family, n, sheet)
	return sheet
}

// View sets v to the scores of step First+t, in a class of the given skew.
func (s *Sheet) View(t int, skew float64, v *View) {
	n := len(s.Critical) / s.Steps
	v.Critical = s.Critical[t*n:][:n]
	v.Each = v.Each[:0]
	for _, own := range s.Each {
		v.Each = append(v.Each, own[t*n:][:n])
	}
	if s.Weighs {
		kept := s.Sinks + s.Window
		v.Score = v.Score[:0]
		for _, scores := range s.Score {
			v.Score = append(v.Score, scores[t*n:][:n])
		}
		v.Kept = s.Kept[t*kept:][:kept]
		v.Skew = float32(skew) * s.Skew[t]
	}
}
