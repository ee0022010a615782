package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// rounds passes the time of a layer's progressive attention (PSA §3.2, §3.3).
//
// Consecutive rounds without loads share one launch. A round with loads begins a new launch, which
// continues from the state of the last one. A launch costs as much as block-sparse decode of the
// same tokens.
//
// Pipelined, a round's loads run in their own stream during the attention of the launch before. The
// CPU is at most two launches ahead: it reads a launch's result before it loads blocks for the
// launch after the next. Loads therefore start at least one round trip after that result; only the
// loads of a layer's first two launches do not wait. Blocks that were loaded for a round that no
// list reached keep the link busy. The next layer's attention and the step's end wait for them. Not
// pipelined, the CPU waits for each round's result before it loads for the next.
func (d *Device) rounds(w *sim.Work) {
	d.awaitLate()
	var (
		start        = d.now
		attention    des.Time       // sum of the launches
		done, before = d.now, d.now // end of attention of the last launch, and of the one before
		loaded       = max(d.now, d.linkFree)
		slow         = d.duplexSlowdown(w.Rounds)
		launches     = 0
		waits        des.Time // of the CPU for the stopping rule
	)
	for i := 0; i < len(w.Rounds); {
		r := &w.Rounds[i]
		if r.Loads > 0 {
			ready, latency := before, d.continueLatency
			switch pipelined := d.opts.Pipelined; {
			case pipelined && launches > 1:
				ready = before + latency
			case !pipelined && launches > 0:
				ready, waits = done+latency, waits+latency
			}
			d.costs.notes.mark(notePool, d.bigPool, float64(d.step.DRAMBytes)/(1<<30))
			unshared := des.Time(math.Ceil(
				slow * float64(nanoseconds(d.loader.seconds(r.Loads, d.bytesLoaded)))))
			loaded = max(loaded, ready) + unshared
			d.loading += unshared
		}
		if r.Tokens == 0 {
			d.linkFree = loaded
			i++
			continue
		}
		n := 1
		for i+n < len(w.Rounds) && w.Rounds[i+n].Loads == 0 && w.Rounds[i+n].Tokens > 0 {
			n++
		}
		from := done
		if r.Loads > 0 {
			from = max(done, loaded)
		}
		t := d.costs.launchOf(w.Rounds[i:i+n], float64(w.Decodes))
		attention += t
		before, done = done, from+t
		launches++
		i += n
	}
	d.linkFree = max(d.linkFree, loaded)
	stall := done - start - attention - waits
	d.compute(attention, &d.phases.SparseAttention)
	d.pass(max(0, stall), &d.phases.LoadStall)
	d.pass(waits, &d.phases.Host)
}

// awaitLate waits for loads of rounds that no list reached.
func (d *Device) awaitLate() { d.pass(max(0, d.linkFree-d.now), &d.phases.LoadStall) }

// launchOf returns the time of one launch of progressive attention.
func (c *coster) launchOf(rounds []sim.Round, requests float64) des.Time {
	tokens := 0.0
	for _, r := range rounds {
		tokens += float64(r.Tokens)
	}
	c.notes.mark(notePSA, true, 0)
	return nanoseconds(c.sparse.of(tokens, requests))
}

// duplexSlowdown returns the factor by which overlapping saves slow a layer's loads. Both are
// slowed alike (see load).
func (d *Device) duplexSlowdown(rounds []sim.Round) float64 {
	var unshared des.Time
	var blocks int64
	for i := range rounds {
		if n := rounds[i].Loads; n > 0 {
			unshared += nanoseconds(d.loader.seconds(n, d.bytesLoaded))
			blocks += n
		}
	}
	if unshared == 0 {
		return 1
	}
	both, slowed := d.beside(unshared, d.saves.work, float64(blocks)*float64(d.bytesLoaded))
	d.saves.hold(slowed - both)
	return float64(unshared-both+slowed) / float64(unshared)
}
