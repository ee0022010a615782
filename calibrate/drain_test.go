package calibrate

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/sim/des"
)

func tinyDrain(kind drainConfig) *drainRun {
	like := tinyCase(probeLiveOffload)
	tiny := newDrainRun(like.model, like.requests, kind, 40)
	tiny.prompt, tiny.budget, tiny.pause = like.prompt, like.budget, 1
	return tiny
}

// Each draining server serves on a device that computes, and has every
// sample that its probes ask for; it frees all of its memory.
func TestDrainRunsServe(t *testing.T) {
	for name, kind := range map[string]drainConfig{
		"top-k": {}, "PSA": {psa: true}, "held": {held: true}, "PSA, held": {psa: true, held: true},
		"dense": {held: true, dense: true}, "the GPU's lookup": {lookup: true},
		"PSA, the GPU's lookup": {psa: true, lookup: true}, "chunks": {held: true, chunks: true},
		"chunks, dense": {held: true, dense: true, chunks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := emulator.New(emulator.Config{})
			memory, err := machine.HostAlloc(slab, cuda.HugePages)
			if err != nil {
				t.Fatal(err)
			}
			c, m := tinyDrain(kind),
				&pooled{Machine: machine, pool: &hostPool{segments: []cuda.HostMemory{memory}, bytes: slab},
					each: slab}
			times, err := c.times(m)
			if err != nil {
				t.Fatal(err)
			}
			if device, host := machine.Held(); device != 0 || host != slab {
				t.Errorf("%d bytes of the device and %d of the host are held", device, host)
			}
			p := Point{Axes: []Axis{{"layers", 2}, {"requests", int64(c.requests)}}}
			samples, err := dealtMedians(kind.steps(times, p))
			if err != nil || len(samples) != drainSamples || slices.Min(samples) <= 0 {
				t.Errorf("samples %v, %v", samples, err)
			}
			if n := len(times.longer(p)); n != c.requests-1 && !kind.chunks {
				t.Errorf("%d steps after a request's end, want %d", n, c.requests-1)
			}
			if rounds, err := c.rounds(); kind.psa && (err != nil || rounds[1] < 1 || rounds[1] > 2) {
				t.Errorf("%d rounds of 21 blocks in microbatches of %d, %v", rounds[1], psaMicro, err)
			}
		})
	}
}

// The two servers whose difference is a layer's round trip serve the same requests, for long enough
// to tell what the host does; the others do what the GPU needs.
func TestServersOfRoundTripsAreAlike(t *testing.T) {
	t.Parallel()
	steps := func(kind drainConfig) int {
		c, err := newServerRun(shapes[1], 1, kind)
		if err != nil {
			t.Fatal(err)
		}
		return c.every
	}
	offloading, held := steps(drainConfig{}), steps(drainConfig{held: true})
	if offloading != held || offloading < 40 {
		t.Errorf("%d and %d steps of each number of requests", offloading, held)
	}
	for _, kind := range []drainConfig{{psa: true}, {lookup: true}, {held: true, dense: true},
		{held: true, psa: true}, {lookup: true, psa: true}} {
		if n := steps(kind); n != drainSteps {
			t.Errorf("%+v: %d steps", kind, n)
		}
	}
}

// The steps of a server are sorted by what changes in them: 256 blocks and more
// for each of eight requests, each of which begins a block every 32 steps.
func TestPlannedDrainRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds; make test-all runs it")
	}
	seen := map[string]bool{}
	for _, p := range points(Full, fakeLimits) {
		if probeOf(p.Probe).fixed != drainSamples {
			continue
		}
		kind, steps := drainConfig{}, (*drainTimes).steadyAt
		if p.Probe == probeLiveFreed {
			steps = (*drainTimes).longer
		} else if p.Probe != probeLiveUnsplit {
			kind = overheadServerOf(p.Probe).kind
			steps = func(t *drainTimes, p Point) []float64 { return kind.steps(t, p) }
		}
		seen[p.Probe] = true
		c, err := newServerRun(p.Shape, p.At("layers"), kind)
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
		cfg.Device = &idle{each: 7 * des.Millisecond}
		times, err := c.serve(cfg)
		if err != nil {
			t.Fatalf("%s: %v", p.Key(), err)
		}
		if samples, err := dealtMedians(steps(times, p)); err != nil || len(samples) != drainSamples {
			t.Errorf("%s: %d samples, %v", p.Key(), len(samples), err)
		}
	}
	if len(seen) != len(overheadServers)+2 {
		t.Errorf("only %v are planned", seen)
	}
}
