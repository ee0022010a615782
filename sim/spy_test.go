package sim_test

import (
	"fmt"
	"hash"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// spy passes calls on to a device, checks their order and sums them up.
type spy struct {
	sim.Device
	begin func() error // called as a step begins
	lag   des.Time     // added to the time at which saves complete
	// unaware hides when saves complete until they do, as a real device must.
	unaware bool
	savedAt []des.Time // by step
	// timeless completes saves at the end of their step, so that the server does not depend on the
	// link. Their time stays in the step's.
	timeless bool
	asked    hash.Hash64 // of all that the device was asked, but for when; nil: not noted

	step         sim.Step
	layer        int   // last of the running step, -1 before the first
	query        int64 // token-layers of prefill attention, over the run
	pairs        int64 // what each of these attends to, itself included, in sum
	loads, saves int64 // blocks, over the run
	floor        func(*sim.Work) float64
	least        float64 // seconds that the running step takes at the card's peaks
	loaded       int64   // blocks of the running step
	ended        []stepTotals
	// loads and saves of cached prefixes; fetched includes the loads within steps
	fetched, kept []carried
	own           int // of fetched, the running step's
}

// carried is what was asked to move at a time, and when it was there: on the link, and on SSD.
type carried struct {
	at, done, onSSD des.Time
	bytes, ssd      int64
}

// stepTotals is what a device was asked in one step, and its answer.
type stepTotals struct {
	sim.Step
	Loads  int64
	Saves  int64 // over the run so far
	Least  float64
	Timing metrics.Timing
	Asked  uint64 // spy.asked by the step's end
}

func (d *spy) Begin(s *sim.Step) error {
	if d.begin != nil {
		if err := d.begin(); err != nil {
			return err
		}
	}
	d.step, d.layer, d.loaded, d.least = *s, -1, 0, 0
	d.note("begin", s.Requests, s.Sampled, s.DRAMBytes)
	d.fetched = append(d.fetched, carried{at: s.Start, bytes: s.Prefix.Bytes, ssd: s.Prefix.SSD})
	d.own = len(d.fetched) - 1
	return d.Device.Begin(s)
}

func (d *spy) Move(m *kv.Moves) error {
	if m.Layer <= d.layer || m.Loads < 0 || m.Saves < 0 {
		return fmt.Errorf("layer %d moves %+v after layer %d", m.Layer, m, d.layer)
	}
	d.loads += m.Loads
	d.loaded += m.Loads
	d.saves += m.Saves
	d.note("move", *m)
	return d.Device.Move(m)
}

func (d *spy) Compute(layer int, w *sim.Work) error {
	if layer <= d.layer {
		return fmt.Errorf("layer %d computes after layer %d", layer, d.layer)
	}
	d.layer = layer
	tokens := w.Decodes * (1 + w.Drafts)
	for _, p := range w.Prefill {
		d.query += int64(p.Query)
		d.pairs += int64(p.Query) * int64(2*p.Prefix+p.Query+1) / 2
		tokens += p.Query
	}
	if tokens != w.Tokens || tokens == 0 {
		return fmt.Errorf("layer %d computes %d tokens: %+v", layer, tokens, w)
	}
	if d.floor != nil {
		d.least += d.floor(w)
	}
	d.note("compute", layer, *w)
	return d.Device.Compute(layer, w)
}

func (d *spy) Draft(w *sim.Work, rows int) error { return d.Device.(sim.Drafter).Draft(w, rows) }

func (d *spy) Finish() (metrics.Timing, error) {
	timing, err := d.Device.Finish()
	d.fetched[d.own].done = d.step.Start + timing.Elapsed // no later
	timing.SavesDone += d.lag
	if d.timeless {
		timing.SavesDone = timing.Elapsed
	}
	ended := stepTotals{Step: d.step, Loads: d.loaded, Saves: d.saves, Least: d.least,
		Timing: timing}
	if d.asked != nil {
		ended.Asked = d.asked.Sum64()
	}
	d.ended = append(d.ended, ended)
	if d.unaware {
		d.report(&timing)
	}
	return timing, err
}

func (d *spy) FetchPrefix(at des.Time, l sim.PrefixLoad) des.Time {
	done := d.Device.(sim.PrefixDevice).FetchPrefix(at, l)
	d.fetched = append(d.fetched, carried{at: at, done: done, bytes: l.Bytes, ssd: l.SSD})
	return done
}

func (d *spy) SavePrefix(at des.Time, bytes, ssd int64) (dram, onSSD des.Time) {
	dram, onSSD = d.Device.(sim.PrefixDevice).SavePrefix(at, bytes, ssd)
	d.kept = append(d.kept, carried{at: at, done: dram, onSSD: onSSD, bytes: bytes, ssd: ssd})
	return dram, onSSD
}

func (d *spy) note(values ...any) {
	if d.asked != nil {
		fmt.Fprintln(d.asked, values...)
	}
}

// report holds back what a device that only sees saves complete cannot know yet.
func (d *spy) report(t *metrics.Timing) {
	d.savedAt = append(d.savedAt, max(d.step.Start+t.SavesDone, d.lastSaved()))
	end := d.step.Start + t.Elapsed
	t.SavedSteps, t.SavesDone = 0, 0
	for i, at := range d.savedAt {
		if at > end {
			break
		}
		t.SavedSteps, t.SavesDone = int64(i+1), max(0, at-d.step.Start)
	}
}

func (d *spy) lastSaved() des.Time {
	if len(d.savedAt) == 0 {
		return 0
	}
	return d.savedAt[len(d.savedAt)-1]
}

func (d *spy) Drain() (des.Time, error) {
	if !d.unaware {
		return d.Device.Drain()
	}
	return d.lastSaved() - d.step.Start, nil
}
