package calibrate

import (
	"slices"
	"testing"

	"sparseserve/cuda"
	"sparseserve/cuda/soft"
)

func tinyLeaving(kind leavingKind) *leavingCase {
	like := tinyCase(probeLiveOffload)
	tiny := newLeavingCase(like.model, like.requests, kind, 40)
	tiny.prompt, tiny.budget = like.prompt, like.budget
	switch { // at short contexts a prefill asks for most
	case kind.tight && kind.psa:
		tiny.room = 2.2
	case kind.tight:
		tiny.room = 1.3
	}
	return tiny
}

// Each server that requests leave serves on a device that computes, and has every
// sample that its probes ask for; nothing of it is left behind.
func TestLeavingCasesServe(t *testing.T) {
	for name, kind := range map[string]leavingKind{
		"top-k": {}, "PSA": {psa: true}, "held": {held: true}, "PSA, held": {psa: true, held: true}, "dense": {held: true, dense: true}, "one at a time": {held: true, dense: true, single: true}, "the GPU's lookup": {lookup: true}, "tight": {lookup: true, tight: true}, "PSA, the GPU's lookup": {psa: true, lookup: true}, "PSA, tight": {psa: true, lookup: true, tight: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := soft.New(soft.Config{})
			memory, err := machine.HostAlloc(slab, cuda.HugePages)
			if err != nil {
				t.Fatal(err)
			}
			c, m := tinyLeaving(kind), &pooled{Machine: machine, pool: &hostPool{segments: []cuda.HostMemory{memory}, bytes: slab}, each: slab}
			times, err := c.times(m)
			if err != nil {
				t.Fatal(err)
			}
			if device, host := machine.Held(); device != 0 || host != slab {
				t.Errorf("%d bytes of the device and %d of the host are held", device, host)
			}
			for _, probe := range leavingProbes {
				p := Point{Probe: probe, Axes: []Axis{{"layers", 2}, {"requests", int64(c.requests)}, {"missing", 0}, {"prefix_tokens", 0}}}
				if kind.tight {
					p.Axes[2].Value = 1
				}
				if p.leavingKind() != kind || probe == probeLiveFreed || probe == probeLiveChunk || probe == probeLivePrompt { // two ends are too few for samples, and short prompts share a chunk
					continue
				}
				samples, err := times.samples(p)
				if err != nil || len(samples) != leavingSamples || slices.Min(samples) <= 0 {
					t.Errorf("%s: samples %v, %v", probe, samples, err)
				}
			}
			if n := len(times.more(times.freed)); n > c.requests-1 || n < c.requests-1 && !kind.tight && !kind.single || n == 0 && !kind.single { // where room is tight, saves that land late hold steps up
				t.Errorf("%d steps behind a request's end, want %d", n, c.requests-1)
			}
			means, err := c.means()
			if at := means[1]; kind.psa && (err != nil || at.rounds < 1 || at.rounds > 2) {
				t.Errorf("%d rounds of 21 blocks in microbatches of %d, %v", at.rounds, psaMicro, err)
			}
			if at := means[int64(c.requests)]; (at.loads > 0) != kind.tight {
				t.Errorf("a layer loads %d blocks", at.loads)
			}
		})
	}
}

// The steps of a server are sorted by what changes in them: 256 blocks and more
// for each of eight requests, each of which begins a block every 32 steps.
func TestPlannedLeavingCases(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range points(Full, fakeLimits) {
		if !slices.Contains(leavingProbes, p.Probe) {
			continue
		}
		seen[p.Probe] = true
		c, err := p.leavingCase()
		if err != nil {
			t.Fatalf("%s: %v", p.Key(), err)
		}
		if need, err := c.deviceBytes(); err != nil || need > 128<<30 {
			t.Errorf("%s: %s of device memory, %v", p.Key(), size(need), err)
		}
		if p.Shape == shapes[0] && p.Probe != probeLiveCPU && p.Probe != probeLiveTight { // the others differ in what the model is like
			continue
		}
		c.model.Layers = 1
		cfg, err := c.config()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Device = &idle{}
		times, err := c.serve(cfg, nil)
		if err != nil {
			t.Fatalf("%s: %v", p.Key(), err)
		}
		if samples, err := times.samples(p); err != nil || len(samples) != leavingSamples {
			t.Errorf("%s: %d samples, %v", p.Key(), len(samples), err)
		}
	}
	if len(seen) != len(leavingProbes) {
		t.Errorf("only %v are planned", seen)
	}
}
