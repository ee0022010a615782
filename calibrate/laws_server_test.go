package calibrate

import (
	"sync"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// lawDevice is the machine under a server: it passes the times of its laws.
type lawDevice struct {
	idle
	machine  *machine
	shape    string
	model    *hw.Model
	overhead float64 // s a layer of decodes; with chunks, what these add
	chunks   bool
	step     sim.Step
	tokens   int
	elapsed  float64 // s
}

func (d *lawDevice) Begin(s *sim.Step) error {
	d.step, d.elapsed = *s, d.machine.step+float64(s.Requests)*d.machine.request
	return nil
}

func (d *lawDevice) Score(_ int, w *sim.Work) error {
	if w.ScoredBlocks > 0 {
		d.elapsed += d.machine.scores(d.model, float64(w.Decodes), float64(w.ScoredBlocks))
	}
	return nil
}

// Compute passes a layer of decodes; a chunk's at the full clock, and as if it had no attention
// where it is no sample.
func (d *lawDevice) Compute(_ int, w *sim.Work) error {
	t, m, tokens, batch := d.machine, d.model, float64(w.DecodeTokens), float64(w.Decodes)
	d.tokens = w.Tokens
	d.elapsed += t.linears(m, float64(w.Tokens)) + t.between(m, float64(w.Tokens))
	switch {
	case d.chunks && len(w.Prefill) > 0:
		rows := (w.Tokens + 63) / 64 * 64
		d.elapsed += t.linears(m, float64(rows))*(1-t.gainAt(d.shape, int64(rows))) -
			t.linears(m, float64(w.Tokens)) + d.overhead
		for _, s := range w.Prefill {
			d.elapsed += t.prefill(m, float64(s.Query), float64(s.Prefix), blockTokens)
		}
		if w.Digests > 0 {
			d.elapsed += float64(w.Digests)*t.closeLaunch/2 +
				float64(w.DigestTokens)*kvToken(m)/t.closeRate/5
		}
	case !d.chunks && len(w.Prefill) == 0:
		d.elapsed += d.overhead
	}
	switch {
	case batch == 0:
	case len(w.Rounds) > 0:
		var rounds []float64
		for _, r := range w.Rounds {
			rounds = append(rounds, float64(r.Tokens)*kvToken(m))
		}
		d.elapsed += t.progressive(batch*float64(m.KVHeads), rounds, 1)
	case w.Sparse:
		d.elapsed += t.sparseDecode(m, batch, tokens)
	default:
		d.elapsed += t.denseDecode(m, batch, tokens)
	}
	return nil
}

func (d *lawDevice) Finish() (sim.Timing, error) {
	timing, err := d.idle.Finish()
	d.elapsed += d.machine.head(d.model, float64(d.tokens), float64(d.step.Sampled))
	timing.Elapsed = des.Time(d.elapsed * 1e9)
	return timing, err
}

// served is a steady step of the point's draining server on the machine. Lists are the same
// whoever looks them up, so the server keeps all KV in HBM.
func (t *machine) served(p Point) float64 {
	key := servedKey{*t, p.Probe, p.Shape, p.At("layers")}
	times, ok := servedKnown.Load(key)
	if !ok {
		k := overheadServerOf(p.Probe)
		kind := k.kind
		kind.held, kind.lookup = true, false
		c, err := newServerRun(p.Shape, p.At("layers"), kind)
		must(err)
		cfg, err := c.config()
		must(err)
		overhead := 0.0
		for i := range overheadServers {
			if overheadServers[i].probe == p.Probe {
				overhead = t.overhead[i]
			}
		}
		cfg.Device = &lawDevice{machine: t, shape: p.Shape, model: c.model, overhead: overhead,
			chunks: k.kind.chunks}
		times, err = c.serve(cfg)
		must(err)
		servedKnown.Store(key, times)
	}
	steps, err := dealtMedians(overheadServerOf(p.Probe).kind.steps(times.(*drainTimes), p))
	must(err)
	return medianOf(steps).Value
}

type servedKey struct {
	machine
	probe, shape string
	layers       int64
}

var servedKnown sync.Map // servedKey to *drainTimes, read only
