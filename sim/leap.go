package sim

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// A dense step without offloading that decodes all running requests differs from the previous one
// only in context lengths. The scheduler would form the same batch again until a request arrives or
// ends, or free blocks run out: waiting requests did not fit, and less memory is free now. Such
// steps are handled as one event. Each step is still priced and recorded in order, but the requests
// are updated once at the end.

// leaps is the state of fast-forwarding.
type leaps struct {
	stepwise bool    // fast-forward is off
	leapt    int     // steps that were fast-forwarded
	taken    []int64 // scratch of growing
}

// leap ends the step that began at now and further steps while they only produce tokens. It returns
// the start time of the step that is still running.
func (s *Server) leap(now des.Time) (des.Time, error) {
	most, ok := s.leapOver(now)
	if !ok {
		return now, nil
	}
	st, n := &s.step, len(s.step.decodes)
	next, ok := s.events.At()
	if !ok {
		next = math.MaxInt64
	}
	used, block := s.memory.Used(), s.memoryBlock()
	growing := s.growing(st.decodes, s.Geometry.BlockTokens)
	var longest des.Time
	steps := 0
	for ; steps < most; steps++ {
		end := now + st.rec.Timing.Elapsed
		grown := used + growing[steps%len(growing)]
		if end >= next || grown > s.memory.Total() || s.Stopped() != nil {
			break
		}
		used = grown
		s.leapt++
		s.events.Pass(end)
		s.Metrics.EmitMany(end-now, n)
		for range n {
			s.rec.Gap(end - now)
		}
		longest = max(longest, end-now)
		if err := s.recordStep(); err != nil {
			s.growBy(steps)
			return now, err
		}
		now = end
		st.work.DecodeTokens += int64(n)
		st.meta.Index, st.meta.Start, st.rec.Index, st.rec.Start = s.steps, now, s.steps, now
		if err := s.priceNext(now); err != nil {
			s.growBy(steps + 1)
			return now, err
		}
		st.rec.HBMBytes = used * block
		st.rec.BatchFull, st.rec.KVFull = s.nearLimits(used)
	}
	if steps == 0 {
		return now, nil
	}
	for _, r := range st.decodes {
		r.record.LastToken = now + s.Engine.Reply
		r.record.LongestTBT = max(r.record.LongestTBT, longest)
	}
	s.growBy(steps)
	s.sched.Repeated(steps)
	if s.memory.Used() != used {
		panic(fmt.Sprintf("sim: law 1: %d blocks used at the end of %d steps, %d by step",
			s.memory.Used(), steps, used))
	}
	return now, nil
}

// priceNext prices a step that differs from the previous one only in context lengths.
func (s *Server) priceNext(now des.Time) error {
	st := &s.step
	if timing, ok := s.repeater.Next(&st.meta, &st.work); ok {
		st.rec.Timing = timing
		return st.checkTime(now)
	}
	if err := s.Device.Begin(&st.meta); err != nil {
		return err
	}
	if err := s.repeater.Repeat(0, s.Model.Layers, &st.work); err != nil {
		return err
	}
	return st.finish(s.Device, now)
}

// growBy gives the batch's requests the tokens of the given number of steps. It also allocates the
// blocks for these steps and the one after them.
func (s *Server) growBy(steps int) {
	for _, r := range s.step.decodes {
		r.Generated += steps
		s.memory.Grow(r.Grant, r.Context(), r.Context())
	}
}

// leapOver returns the number of steps, from the step that began at now, that end no request and no
// prompt. ok is false if the following steps may differ in other ways: replicas of a fleet
// interleave their steps, a cutoff keeps each token, a prefix cache changes with each block, and
// speculation accepts a random number of tokens. With window layers, requests do not take one block
// per BlockTokens tokens.
func (s *Server) leapOver(now des.Time) (most int, ok bool) {
	b := s.step.batch
	if s.stepwise || s.Spec.Speculation.Tokens > 0 || s.Model.BoundTokens > 0 ||
		s.Route != nil || !s.uniform() || s.repeater == nil || s.Spec.CachesPrefixes() ||
		s.Metrics.KeepsTokens() || s.RecordTo != nil || s.untried || len(b.Preempted) > 0 ||
		len(b.Decodes) != s.sched.Running() {
		return 0, false
	}
	most = math.MaxInt
	for _, r := range s.step.decodes {
		if r.record.LastToken != now+s.Engine.Reply { // its token interval differs from the step time
			return 0, false
		}
		most = min(most, r.Output-r.Generated-1)
	}
	return most, most > 0
}

// growing returns the number of decodes that allocate a block in each of the next BlockTokens
// steps; the counts then repeat.
func (l *leaps) growing(decodes []*request, block int) []int64 {
	if len(l.taken) != block {
		l.taken = make([]int64, block)
	}
	clear(l.taken)
	for _, r := range decodes {
		l.taken[(block-r.Context()%block)%block]++
	}
	return l.taken
}
