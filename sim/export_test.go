package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Up returns the servers that are up.
func (r *Shared) Up() (up []*Server) {
	for _, s := range r.servers {
		if s != nil {
			up = append(up, s)
		}
	}
	return up
}

// Look is Run with a look after every event.
func Look(r *Shared, w Workload, rec Recorder, look func() error) (*metrics.Run, error) {
	if err := r.Begin(w, rec); err != nil {
		return nil, err
	}
	for {
		more, err := r.Advance()
		if err != nil {
			return nil, err
		}
		if !more {
			return r.End()
		}
		if err := look(); err != nil {
			return nil, err
		}
	}
}

// Drive is Run with a look at the server after every event.
func (s *Server) Drive(w Workload, rec Recorder, look func() error) (*metrics.Run, error) {
	return Look(s.Shared, w, rec, func() error {
		if err := look(); err != nil {
			return fmt.Errorf("at %v, step %d: %w", s.Now(), s.steps, err)
		}
		return nil
	})
}

// Stepwise makes every step an event.
func (s *Server) Stepwise() { s.stepwise = true }

// Leapt counts the steps that were no event of their own.
func (s *Server) Leapt() int { return s.leapt }

// CheckBatch is a law that builds with the tag lawcheck verify.
func (s *Server) CheckBatch() error { return s.memory.checkBatch() }

// BatchContexts returns the contexts of the decodes of the running step.
func (s *Server) BatchContexts() (contexts []int) {
	for _, r := range s.step.batch.Decodes {
		contexts = append(contexts, r.Context())
	}
	return contexts
}

// HitBeyondLost returns the token-layers that other requests have computed for the prefills that
// restart in the running step: what they hit beyond what they had computed before a preemption.
func (s *Server) HitBeyondLost() (n int64) {
	for i := range s.step.batch.Prefills {
		seg := &s.step.batch.Prefills[i]
		if r := s.requests[seg.Req]; r.record.Preemptions > 0 && seg.TokenFrom == r.Hit &&
			seg.LayerFrom == 0 {
			n += int64(max(0, r.Hit-r.Lost) * s.Model.Layers)
		}
	}
	return n
}

// Holdings is what requests hold of a server.
type Holdings struct{ Requests, Granted, Reserved, Held, Saves int64 }

// Left returns what should be zero when all requests have gone: requests in
// the queues, granted blocks, bytes reserved or held in HBM, saves in flight.
func (s *Server) Left() Holdings {
	s.memory.Plan(math.MaxInt64 - 1) // all saves have ended
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

// Coming counts the requests on their way to a scheduler.
func (s *Server) Coming() int { return s.front.coming.Len() }

// Recount compares the load of a replica with a count of its requests. Between a step's beginning
// and its end the working sets are those at its beginning.
func (s *Server) Recount() error {
	want := Load{Requests: len(s.requests) + s.front.coming.Len()}
	for _, t := range s.front.coming.All() {
		if t.ID > 0 {
			want.add(expected(s.memory, s.Model.MaxContext, &t))
		}
	}
	for _, r := range s.requests {
		want.Tokens += int64(r.Target-r.Done) + int64(r.Output-r.Generated)
		if s.busy {
			want.WorkingSet += r.load.WorkingSet
		} else {
			want.WorkingSet += loadOf(s.memory, r).WorkingSet
		}
	}
	if s.place.load != want {
		return fmt.Errorf("replica %d has a load of %+v, a recount %+v", s.place.Replica, s.place.load,
			want)
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
		h := Holder{Request: r.Request, Text: r.Grant.Text(true)}
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
