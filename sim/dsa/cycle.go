package dsa

import "slices"

// Cycle is the selections of one group over a fixed number of candidate blocks: a cycle of
// Steps steps, each with its changes from the one before. Immutable after Record and safe for
// concurrent use.
type Cycle struct {
	Candidates, Steps int

	next    csr
	used    []uint16 // [Steps]
	added   csr
	dropped csr
}

// csr is one list a step, end to end.
type csr struct {
	ids []uint16
	end []int32 // [Steps]
}

func (c *csr) at(t int) []uint16 {
	from := int32(0)
	if t > 0 {
		from = c.end[t-1]
	}
	return c.ids[from:c.end[t]:c.end[t]]
}

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
		cycles[c] = &Cycle{Candidates: candidates, Steps: steps, used: make([]uint16, 0, steps)}
	}
	picker := policy.Picker()
	var picked []uint16
	for t := range steps {
		for c, s := range cycles {
			var used int
			picked, used = picker.Pick(view(t, c), picked)
			s.next.ids = append(s.next.ids, picked...)
			s.next.end = append(s.next.end, int32(len(s.next.ids)))
			s.used = append(s.used, uint16(used))
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
	for t := range s.Steps {
		s.added.ids, s.dropped.ids = change(s.next.at((t+s.Steps-1)%s.Steps), s.next.at(t), s.added.ids,
			s.dropped.ids, in)
		s.added.end = append(s.added.end, int32(len(s.added.ids)))
		s.dropped.end = append(s.dropped.end, int32(len(s.dropped.ids)))
	}
	for _, c := range []*csr{&s.next, &s.added, &s.dropped} {
		c.ids = slices.Clone(c.ids) // there are many cycles
	}
}

// At returns the selection of step t, 0 <= t < Steps, and how it follows from the step before
// it on the cycle. Read only.
func (s *Cycle) At(t int) Picks {
	return Picks{Next: s.next.at(t), Used: int(s.used[t]), Added: s.added.at(t),
		Dropped: s.dropped.at(t)}
}

// Used returns how many candidates step t attends to.
func (s *Cycle) Used(t int) int { return int(s.used[t]) }
