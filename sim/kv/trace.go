package kv

import (
	"slices"
	"sync"
)

// Trace is the decode selections of one run, step by step, without time. It can be replayed in
// caches of other sizes and eviction orders (Replay) and under Belady's optimum (Optimum). In a
// run, misses would change the schedule.
//
// Prefills are excluded: a request enters with its first decode step, with its full blocks in
// DRAM as after a layer-segmented prefill. The recording cache sets geometry and sample. A
// recorded trace is safe for concurrent use.
type Trace struct {
	Geo        Geometry
	Sample     Sample
	Microbatch int // of progressive attention, 0 if not progressive

	requests []tracedRequest
	steps    []tracedStep

	names map[owner]int32 // index in requests, during recording
	gone  []int32         // freed since the last step
	place []int32         // position in the current step, by handle

	next func() []int32 // nextUses, made at the first call
}

type owner struct {
	handle int32
	born   uint32
}

type tracedRequest struct {
	name   int // Seq.Request
	blocks int // final number of blocks per group
	stored int // blocks in DRAM when the request enters
}

type tracedStep struct {
	gone    []int32 // requests freed before it
	decodes []tracedDecode
	rows    []tracedRow // in the order of accesses, which is layer order
}

type tracedDecode struct {
	request int32
	tokens  int32 // context length; an open block counts as one token
}

// tracedRow is the selection of one group.
type tracedRow struct {
	decode uint16 // in the step
	group  uint16 // in the sample
	Selection
}

// begin records a step's requests.
func (t *Trace) begin(c *Cache, decodes []*Seq) {
	if t.names == nil {
		t.names, t.Geo, t.Sample, t.Microbatch = map[owner]int32{}, c.Geo, c.Sample, c.microbatch
		t.next = sync.OnceValue(t.nextUses)
	}
	if len(decodes) == 0 {
		return
	}
	step := tracedStep{gone: t.gone, decodes: make([]tracedDecode, 0, len(decodes))}
	t.gone = nil
	for i, s := range decodes {
		tokens := s.full * c.Geo.BlockTokens
		if s.blocks > s.full {
			tokens++
		}
		at, known := t.names[owner{s.id, s.born}]
		if !known {
			at = int32(len(t.requests))
			t.names[owner{s.id, s.born}] = at
			t.requests = append(t.requests,
				tracedRequest{name: s.Request, stored: (tokens - 1) / c.Geo.BlockTokens})
		}
		t.requests[at].blocks = s.blocks
		step.decodes = append(step.decodes, tracedDecode{at, int32(tokens)})
		for int(s.id) >= len(t.place) {
			t.place = append(t.place, 0)
		}
		t.place[s.id] = int32(i)
	}
	t.steps = append(t.steps, step)
}

// access records a selection of the current step.
func (t *Trace) access(s *Seq, g int, sel *Selection) {
	step := &t.steps[len(t.steps)-1]
	kept := Selection{All: sel.All}
	if !sel.All {
		kept = Selection{Sinks: sel.Sinks, Tail: sel.Tail, Picks: sel.Picks}
		kept.Next = slices.Clone(sel.Next)
		if sel.Follows {
			kept.Added, kept.Came, kept.Dropped = slices.Clone(sel.Added), slices.Clone(sel.Came),
				slices.Clone(sel.Dropped)
		}
	}
	step.rows = append(step.rows, tracedRow{uint16(t.place[s.id]), uint16(g), kept})
}

// free records that a request was freed.
func (t *Trace) free(s *Seq) {
	if at, known := t.names[owner{s.id, s.born}]; known {
		t.gone = append(t.gone, at)
	}
}

// Steps returns the number of steps with decodes.
func (t *Trace) Steps() int { return len(t.steps) }

// Replay replays a trace in a cache with its geometry, sample and microbatch, otherwise as
// configured. Blocks that become full are saved by the end of the step.
func (t *Trace) Replay(cfg Config) (Stats, error) {
	cfg.Geometry, cfg.Sample, cfg.Microbatch = t.Geo, t.Sample, t.Microbatch
	c, err := NewCache(cfg)
	if err != nil {
		return Stats{}, err
	}
	err = t.replay(c)
	return c.stats, err
}

func (t *Trace) replay(c *Cache) error {
	seqs := make([]*Seq, len(t.requests))
	var batch []*Seq
	for i := range t.steps {
		step := &t.steps[i]
		for _, r := range step.gone {
			c.Free(seqs[r])
		}
		batch = batch[:0]
		for _, d := range step.decodes {
			s := seqs[d.request]
			if s == nil {
				r := &t.requests[d.request]
				s = c.Open(r.blocks * t.Geo.BlockTokens)
				s.Request, seqs[d.request] = r.name, s
				c.Extend(s, int(d.tokens)-1)
				if err := c.Segmented(s); err != nil {
					return err
				}
			}
			c.Extend(s, int(d.tokens))
			batch = append(batch, s)
		}
		c.BeginStep(batch)
		rows := step.rows
		for _, l := range c.layers {
			for ; len(rows) > 0 && int(rows[0].group) < l.To; rows = rows[1:] {
				r := &rows[0]
				c.Access(batch[r.decode], int(r.group), &r.Selection)
			}
			if _, err := c.Fill(l); err != nil {
				return err
			}
		}
		for _, s := range batch {
			c.Saved(s, s.full)
		}
	}
	return nil
}
