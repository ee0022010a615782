package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Drive is Run with a look at the server after every event.
func (s *Server) Drive(w Workload, rec Recorder, look func() error) (*metrics.Run, error) {
	if err := s.begin(w, rec); err != nil {
		return nil, err
	}
	for {
		more, err := s.advance()
		if err != nil {
			return nil, err
		}
		if !more {
			return s.end()
		}
		if err := look(); err != nil {
			return nil, fmt.Errorf("at %v, step %d: %w", s.events.Now(), s.steps, err)
		}
	}
}

// Stepwise makes every step an event.
func (s *Server) Stepwise() { s.stepwise = true }

// Leapt counts the steps that were no event of their own.
func (s *Server) Leapt() int { return s.leapt }

// Check and CheckBatch are the laws that builds with the tag lawcheck verify.
func (s *Server) Check() error      { return s.check() }
func (s *Server) CheckBatch() error { return s.memory.checkBatch() }

// BatchContexts returns the contexts of the decodes of the running step.
func (s *Server) BatchContexts() (contexts []int) {
	for _, r := range s.step.batch.Decodes {
		contexts = append(contexts, r.Context())
	}
	return contexts
}

// Now returns the server's clock.
func (s *Server) Now() des.Time { return s.events.Now() }

// Holdings is what requests hold of a server.
type Holdings struct{ Requests, Granted, Reserved, Held, Saves int64 }

// Left returns what should be zero when all requests have gone: requests in
// the queues, granted blocks, bytes reserved or held in HBM, saves in flight.
func (s *Server) Left() Holdings {
	s.prefixes.plan(math.MaxInt64 - 1) // all saves have ended
	h := Holdings{
		Requests: int64(len(s.requests) + s.sched.Waiting() + s.sched.Running()),
		Granted:  s.memory.Used(),
	}
	if t, ok := s.memory.(*tiered); ok {
		_, h.Reserved = t.cache.Bytes()
		h.Held, h.Saves = t.cache.Held(nil), int64(len(t.saves))
	}
	return h
}

// HBMUsed returns the bytes of blocks, metadata and prefill buffers in HBM;
// Rounding how much whole slots may add to them.
func (s *Server) HBMUsed() int64 { return s.memory.hbmUsed() }

func (s *Server) Rounding() int64 {
	if t, ok := s.memory.(*tiered); ok {
		return t.cache.Rounding()
	}
	return 0
}

// SelectedNow returns the blocks that the running step must select over all KV heads and layers:
// its decodes the budget, or all existing blocks, or the library's decision if the algorithm
// decides. Selecting prefills add as much of their prefix and the blocks that follow it in the
// cache.
func (s *Server) SelectedNow() int64 {
	n := s.selectedNow()
	for i := range s.step.batch.Prefills {
		seg := &s.step.batch.Prefills[i]
		if !s.selectsPrefix(seg.Req) {
			continue
		}
		r := s.requests[seg.Req]
		blocks, hit := r.seq.Blocks(), r.Hit/s.Geometry.BlockTokens
		for layer := seg.LayerFrom; layer < seg.LayerTo; layer++ {
			for h := range s.Geometry.KVHeads {
				selected := blocks
				if layer >= s.Spec.Selection.DenseLayers &&
					hit > s.Spec.Selection.SinkBlocks+s.sel.policy.Limit() {
					used := Candidates(&s.Spec)
					if !s.sel.fixed {
						used = s.sel.attends(r, layer*s.Geometry.KVHeads+h)
					}
					selected = s.Spec.Selection.SinkBlocks + used + blocks - hit
				}
				n += int64(selected)
			}
		}
	}
	return n
}

func (s *Server) selectedNow() int64 {
	if s.Spec.Sparse() && !s.sel.fixed {
		return s.selectedByLibrary()
	}
	var bytes int64
	drafts := s.Spec.Speculation.Tokens
	for _, r := range s.step.batch.Decodes {
		blocks := s.Geometry.Blocks(r.Context() + drafts)
		if s.Spec.Hot() { // the layers that draft have buffers, too
			bytes += int64(min(blocks, s.sel.budget)*(1+drafts)*s.Geometry.Groups()) * s.Geometry.BlockBytes
		} else {
			bytes += s.sel.bytes(r.Context())
		}
	}
	return bytes / s.Geometry.BlockBytes
}

// CheckScores compares the scores of the candidates that the running step selects with the scores
// of the others, and counts the selections.
func (s *Server) CheckScores() (selections int, err error) {
	if !s.busy {
		return 0, nil
	}
	score := s.sel.scores()
	for _, r := range s.step.decodes {
		if r.grid < 0 {
			continue
		}
		for g, group := range s.sel.sample.Groups {
			if int(group)/s.Geometry.KVHeads < s.Spec.Selection.DenseLayers {
				continue
			}
			var sel kv.Selection
			s.sel.of(r, g, false, &sel)
			in := map[uint16]bool{}
			least := float32(math.Inf(1))
			for _, b := range sel.Next {
				in[b] = true
				least = min(least, score(r.seq, g, sel.Sinks+int(b)))
			}
			for b := range uint16(r.cycles[g].Candidates) {
				if x := score(r.seq, g, sel.Sinks+int(b)); !in[b] && x > least {
					return 0, fmt.Errorf("request %d, group %d: block %d scores %v and is left out, one that "+
						"scores %v is not", r.ID, group, b, x, least)
				}
			}
			selections++
		}
	}
	return selections, nil
}

func (s *Server) selectedByLibrary() (n int64) {
	for _, sr := range s.step.batch.Decodes {
		r := s.requests[sr]
		blocks := s.Geometry.Blocks(r.Context())
		kept := s.Spec.Selection.SinkBlocks + s.Spec.Selection.RecentBlocks
		for g := range s.Geometry.Groups() {
			grid := s.Library.Grid(blocks - kept)
			if g/s.Geometry.KVHeads < s.Spec.Selection.DenseLayers || grid < 0 {
				n += int64(blocks)
				continue
			}
			if layer := s.Library.Layer(s.Seed, r.ID, g/s.Geometry.KVHeads,
				s.Geometry.KVHeads); layer != nil {
				used, _ := layer.Decide(grid, r.steps)
				n += int64(kept + used)
				continue
			}
			c := s.Library.CursorOf(s.Seed, r.ID, g/s.Geometry.KVHeads, g%s.Geometry.KVHeads,
				s.Geometry.KVHeads)
			st := s.Library.Cycle(c, grid)
			n += int64(kept + st.At((int(c.Phase)+r.steps)%st.Steps).Used)
		}
	}
	return n
}

// Begin and Advance run a server event by event.
func (s *Server) Begin(w Workload, rec Recorder) error { return s.begin(w, rec) }
func (s *Server) Advance() (bool, error)               { return s.advance() }

// Drive is Run with a look at the fleet after every event.
func (f *Fleet) Drive(w Workload, rec Recorder, look func() error) (*metrics.Run, error) {
	if err := f.begin(w, rec); err != nil {
		return nil, err
	}
	for {
		more, err := f.advance()
		if err != nil {
			return nil, err
		}
		if !more {
			return f.end()
		}
		if err := look(); err != nil {
			return nil, fmt.Errorf("at %v: %w", f.events.Now(), err)
		}
	}
}

func (f *Fleet) Check() error                         { return f.check() }
func (f *Fleet) Begin(w Workload, rec Recorder) error { return f.begin(w, rec) }
func (f *Fleet) Advance() (bool, error)               { return f.advance() }

// Left returns what should be zero when all requests have gone, over all replicas.
func (f *Fleet) Left() (all Holdings) {
	all.Requests = int64(len(f.waiting) + f.coming.len())
	for i := range f.replicas {
		if s := f.replicas[i].server; s != nil {
			h := s.Left()
			all.Requests += h.Requests + int64(s.coming.len())
			all.Granted += h.Granted
			all.Reserved += h.Reserved
			all.Held += h.Held
			all.Saves += h.Saves
		}
	}
	return all
}

// Recount compares the load of every replica with a count of its requests. Between a step's
// beginning and its end the working sets are those at its beginning.
func (f *Fleet) Recount() error {
	for i := range f.replicas {
		s := f.replicas[i].server
		if s == nil {
			continue
		}
		want := load{requests: len(s.requests) + s.coming.len()}
		for _, t := range s.coming.held {
			if t.id > 0 {
				want.add(s.expected(&t))
			}
		}
		for _, r := range s.requests {
			want.tokens += int64(r.Target-r.Done) + int64(r.Output-r.Generated)
			if s.busy {
				want.workingSet += r.load.workingSet
			} else {
				want.workingSet += s.loadOf(r).workingSet
			}
		}
		if s.load != want {
			return fmt.Errorf("replica %d has a load of %+v, a recount %+v", i, s.load, want)
		}
	}
	return nil
}

// Joined counts the blocks that got the slots in which other requests have them.
func (s *Server) Joined() int64 { return s.memory.(*tiered).cache.Stats().Joined }

// Holder is a request that a server has, as its scheduler sees it.
type Holder struct {
	*sched.Request
	Segment *sched.Segment // of its prompt, in the running step
	Decodes bool           // in the running step
	Saving  bool           // some of its prompt, layer by layer
	Text    []prefix.Piece // where prefixes are shared
}

// Holders returns the requests that a server has.
func (s *Server) Holders() (all []Holder) {
	for _, r := range s.requests {
		h := Holder{Request: r.Request, Text: r.table.Text(true)}
		if t, ok := s.memory.(*tiered); ok {
			h.Saving = slices.ContainsFunc(t.saves, func(j saveJob) bool {
				return r.seq != nil && j.seq == r.seq && j.owner == r.seq.Owner() && j.frees
			})
		}
		if s.busy {
			h.Decodes = slices.Contains(s.step.batch.Decodes, r.Request)
			for i := range s.step.batch.Prefills {
				if seg := &s.step.batch.Prefills[i]; seg.Req == r.Request {
					h.Segment = seg
				}
			}
		}
		all = append(all, h)
	}
	return all
}

// Resident counts the blocks that a cache has in HBM.
func (s *Server) Resident() int64 {
	if t, ok := s.memory.(*tiered); ok {
		return t.cache.Resident() / s.Geometry.BlockBytes
	}
	return 0
}
