package dsa

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// Cycle is the selection trace of one group over a fixed number of candidate blocks. It holds
// Steps steps and the changes of each step from the step before. It is immutable after Record
// and safe for concurrent use.
type Cycle struct {
	Candidates, Steps int

	next    []uint16 // [steps][picks]
	added   []uint16 // [steps][added]
	changes []uint16 // [steps][came, dropped]: read together
	old     []uint16 // [steps] came, but not picked in the kv.Lookback steps before
	again   [][3]uint64
	ends    []ends // [Steps+1]
}

// ends is the start of a step's lists, which is also the end of the lists of the step before.
type ends struct {
	next, added, changes, old int32
	used                      uint16
}

// Record runs policy for the given number of steps and stores its selections. view(t) returns
// the policy's input in step t, valid until the next call.
func Record(candidates, steps int, policy ByHead, view func(t int) *View) *Cycle {
	return recordAll(candidates, steps, 1, policy, func(t, _ int) *View { return view(t) })[0]
}

// recordAll records one cycle per class. The views of one step differ only in their skew.
func recordAll(candidates, steps, classes int, policy ByHead,
	view func(t, class int) *View) []*Cycle {
	cycles := make([]*Cycle, classes)
	for c := range cycles {
		cycles[c] = &Cycle{Candidates: candidates, Steps: steps, ends: make([]ends, steps+1),
			again: make([][3]uint64, steps)}
	}
	picker := policy.Picker()
	var picked []uint16
	for t := range steps {
		for c, s := range cycles {
			var used int
			picked, used = picker.Pick(view(t, c), picked)
			s.next = append(s.next, picked...)
			s.ends[t].used, s.ends[t+1].next = uint16(used), int32(len(s.next))
		}
	}
	in := make([]uint64, (candidates+63)/64)
	for _, s := range cycles {
		s.follow(in)
	}
	return cycles
}

// follow computes the changes from step to step.
func (s *Cycle) follow(in []uint64) {
	var row kv.Picks
	last := make([]int, s.Candidates) // step of the last pick; negative before the cycle's start
	for t := range s.Steps {
		for _, b := range s.Next(t) {
			last[b] = t - s.Steps
		}
	}
	for t := range s.Steps {
		row.Next = s.Next(t)
		row.Clear()
		row.Change(s.Next((t+s.Steps-1)%s.Steps), in)
		s.added = append(s.added, row.Added...)
		s.changes = append(append(s.changes, row.Came...), row.Dropped...)
		for _, b := range row.Came {
			if gap := t - last[b]; gap <= kv.Lookback { // gap is at least 2
				s.again[t][(gap-2)/4] += 1 << ((gap - 2) % 4 * 16)
			} else {
				s.old = append(s.old, b)
			}
		}
		for _, b := range row.Next {
			last[b] = t
		}
		e := &s.ends[t+1]
		e.added, e.changes, e.old = int32(len(s.added)), int32(len(s.changes)), int32(len(s.old))
	}
	for _, ids := range []*[]uint16{&s.next, &s.added, &s.changes, &s.old} {
		*ids = slices.Clone(*ids) // there are many cycles
	}
}

// At returns the selection of step t, 0 <= t < Steps, and its changes from the step before on
// the cycle. Read only.
func (s *Cycle) At(t int) (row kv.Picks) {
	row.Next, row.Used = s.Next(t), s.Used(t)
	row.Added, row.Came, row.Dropped = s.Changes(t)
	return row
}

// Next returns the candidates picked in step t. Read only.
func (s *Cycle) Next(t int) []uint16 { return s.next[s.ends[t].next:s.ends[t+1].next] }

// Used returns the number of candidates that step t attends to.
func (s *Cycle) Used(t int) int { return int(s.ends[t].used) }

// Changes returns the changes of step t from the step before on the cycle. Read only.
func (s *Cycle) Changes(t int) (added, came, dropped []uint16) {
	from, to := &s.ends[t], &s.ends[t+1]
	added = s.added[from.added:to.added]
	came = s.changes[from.changes:to.changes]
	return added, came[:len(added)], came[len(added):]
}

// Again splits the candidates that are newly selected in step t by reuse distance. last counts
// candidates with a distance of 2 to 13 steps, in 16-bit counters. others lists the candidates
// with a longer distance. Read only.
func (s *Cycle) Again(t int) (last *[3]uint64, others []uint16) {
	return &s.again[t], s.old[s.ends[t].old:s.ends[t+1].old]
}

// Turn returns the changes of step t of an endlessly repeated cycle. Read only.
func (s *Cycle) Turn(t int) (came, dropped []uint16) {
	_, came, dropped = s.Changes(t % s.Steps)
	return came, dropped
}

// Span returns the number of candidates of the cycle.
func (s *Cycle) Span() int { return s.Candidates }
