package dsa

import "slices"

// Cycle is the selections of one group over a fixed number of candidate blocks: a cycle of
// Steps steps, each with its changes from the one before. Immutable after Record and safe for
// concurrent use.
type Cycle struct {
	Candidates, Steps int

	next    []uint16 // [steps][picks]
	added   []uint16 // [steps][added]
	changes []uint16 // [steps][came, dropped]: read together
	old     []uint16 // [steps] of those that came, not picked in the RecentSteps before
	again   [][3]uint64
	ends    []ends // [Steps+1]
}

// ends is where a step's lists begin, and those of the step before end.
type ends struct {
	next, added, changes, old int32
	used                      uint16
}

// RecentSteps is how many steps before one Again looks back.
const RecentSteps = 13

// Record runs policy over steps successive steps and keeps what it picks. view(t) returns what
// it sees in step t, valid until the next call.
func Record(candidates, steps int, policy ByHead, view func(t int) *View) *Cycle {
	return recordAll(candidates, steps, 1, policy, func(t, _ int) *View { return view(t) })[0]
}

// recordAll records a cycle of each class; the views of one step differ in their skew alone.
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

// follow finds what changes from step to step.
func (s *Cycle) follow(in []uint64) {
	var row Picks
	last := make([]int, s.Candidates) // steps, before the first of the cycle, of the last pick
	for t := range s.Steps {
		for _, b := range s.Next(t) {
			last[b] = t - s.Steps
		}
	}
	for t := range s.Steps {
		row.Next = s.Next(t)
		row.clear()
		row.change(s.Next((t+s.Steps-1)%s.Steps), in)
		s.added = append(s.added, row.Added...)
		s.changes = append(append(s.changes, row.Came...), row.Dropped...)
		for _, b := range row.Came {
			if gap := t - last[b]; gap <= RecentSteps { // and 2 at least
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

// At returns the selection of step t, 0 <= t < Steps, and how it follows from the step before
// it on the cycle. Read only.
func (s *Cycle) At(t int) (row Picks) {
	row.Next, row.Used = s.Next(t), s.Used(t)
	row.Added, row.Came, row.Dropped = s.Changes(t)
	return row
}

// Next returns what step t picks. Read only.
func (s *Cycle) Next(t int) []uint16 { return s.next[s.ends[t].next:s.ends[t+1].next] }

// Used returns how many candidates step t attends to.
func (s *Cycle) Used(t int) int { return int(s.ends[t].used) }

// Changes returns how step t follows from the step before it on the cycle. Read only.
func (s *Cycle) Changes(t int) (added, came, dropped []uint16) {
	from, to := &s.ends[t], &s.ends[t+1]
	added = s.added[from.added:to.added]
	came = s.changes[from.changes:to.changes]
	return added, came[:len(added)], came[len(added):]
}

// Again says when the candidates that come in step t were picked before: how many of them last
// 2 to 13 steps ago, in 16 bits each, and which were not in this time. Read only.
func (s *Cycle) Again(t int) (last *[3]uint64, others []uint16) {
	return &s.again[t], s.old[s.ends[t].old:s.ends[t+1].old]
}

// Turn returns the changes of step t of a cycle that is repeated without end. Read only.
func (s *Cycle) Turn(t int) (came, dropped []uint16) {
	_, came, dropped = s.Changes(t % s.Steps)
	return came, dropped
}

// Span returns how many candidates a cycle is of.
func (s *Cycle) Span() int { return s.Candidates }
