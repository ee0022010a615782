package calibrate

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

func tinyLeaving(kind leavingKind) *leavingCase {
	like := tinyCase(probeLiveOffload)
	tiny := newLeavingCase(like.model, like.requests, kind, 40)
	tiny.prompt, tiny.budget = like.prompt, like.budget
	return tiny
}

// Each server that requests leave serves on a device that computes, and has every
// sample that its probes ask for; nothing of it is left behind.
func TestLeavingCasesServe(t *testing.T) {
	for name, kind := range map[string]leavingKind{
		"top-k": {}, "PSA": {psa: true}, "held": {held: true}, "PSA, held": {psa: true, held: true}, "dense": {held: true, dense: true}, "the GPU's lookup": {lookup: true}, "PSA, the GPU's lookup": {psa: true, lookup: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := emulator.New(emulator.Config{})
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
				p := Point{Probe: probe, Axes: []Axis{{"layers", 2}, {"requests", int64(c.requests)}}}
				if p.leavingKind() != kind || probe == probeLiveFreed { // two ends are too few for samples
					continue
				}
				samples, err := times.samples(p)
				if err != nil || len(samples) != leavingSamples || slices.Min(samples) <= 0 {
					t.Errorf("%s: samples %v, %v", probe, samples, err)
				}
			}
			if n := len(times.longer()); n != c.requests-1 {
				t.Errorf("%d steps behind a request's end, want %d", n, c.requests-1)
			}
			if rounds, err := c.rounds(); kind.psa && (err != nil || rounds[1] < 1 || rounds[1] > 2) {
				t.Errorf("%d rounds of 21 blocks in microbatches of %d, %v", rounds[1], psaMicro, err)
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
		if p.Shape == shapes[0] { // the others differ in what the model is like
			continue
		}
		c.model.Layers = 1
		cfg, err := c.config()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Device = &idle{}
		times, err := c.serve(cfg)
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
