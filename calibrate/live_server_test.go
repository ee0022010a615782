package calibrate

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/hw"
)

// slab is at least what a device pins at a time for a tiny model.
const slab = 8 * mib

func tinyCase(probe string) *liveCase {
	m := &hw.Model{Name: "tiny", Layers: 2, Hidden: 32, QHeads: 2, KVHeads: 2, HeadDim: 64, FFN: 32,
		Vocab: 64, WeightBytesEach: 2, KVBytesEach: 2}
	c := newLiveCase(m, probe == probeLive, 3)
	c.prompt, c.budget = 640, 256
	switch probe {
	case probeLiveLoads:
		c.capacity = 1.5
	case probeLiveFirst:
		c.requests, c.first = 1, true
	}
	return c
}

// Each probe serves on a device that computes, in pages of the bench's pool, and
// gives all else back; it loads as often as the plan expects.
func TestLiveCasesServe(t *testing.T) {
	for _, probe := range liveProbes {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			machine := emulator.New(emulator.Config{})
			memory, err := machine.HostAlloc(slab, cuda.HugePages)
			if err != nil {
				t.Fatal(err)
			}
			c, m := tinyCase(probe),
				&pooled{Machine: machine, pool: &hostPool{segments: []cuda.HostMemory{memory}, bytes: slab},
					each: slab}
			samples, err := c.samples(m, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(samples) != 2 {
				t.Errorf("%d samples, want 2", len(samples))
			}
			if device, host := machine.Held(); device != 0 || host != slab || m.lent == 0 &&
				probe != probeLive {
				t.Errorf("%d bytes of the device and %d of the host are held, lent %d times", device, host,
					m.lent)
			}
			loads, err := c.loads()
			if err != nil {
				t.Fatal(err)
			}
			if (loads > 0) != (c.capacity > 0 || c.first) {
				t.Errorf("a layer loads %d blocks", loads)
			}
			if need, err := c.deviceBytes(); err != nil || need < liveReserve+c.server().HBMBytes {
				t.Errorf("%d bytes are asked of a device, %v", need, err)
			}
		})
	}
}

// Pages beyond the pool's end share its memory; what is not pages is the machine's own.
func TestPooledPagesShareThePool(t *testing.T) {
	machine := emulator.New(emulator.Config{})
	pool := &hostPool{}
	for range 2 {
		memory, err := machine.HostAlloc(slab, cuda.HugePages)
		if err != nil {
			t.Fatal(err)
		}
		pool.segments, pool.bytes = append(pool.segments, memory), pool.bytes+slab
	}
	m := &pooled{Machine: machine, pool: pool, each: slab}
	for i, want := range []cuda.Ptr{pool.segments[0].Ptr(), pool.segments[1].Ptr(),
		pool.segments[0].Ptr()} {
		got, err := m.HostAlloc(slab-kib, cuda.HugePages)
		if err != nil || got.Ptr() != want || len(got.Bytes()) != slab-kib {
			t.Errorf("slab %d: %d bytes at %#x, %v, want them at %#x", i, len(got.Bytes()), got.Ptr(), err,
				want)
		}
		if err := m.HostFree(got); err != nil {
			t.Error(err)
		}
	}
	own, err := m.HostAlloc(kib, cuda.DriverPages)
	if err != nil || pool.has(own.Ptr()) {
		t.Errorf("lists are in the pool, %v", err)
	}
	if err := m.HostFree(own); err != nil {
		t.Error(err)
	}
	if _, host := machine.Held(); host != 2*slab {
		t.Errorf("%d bytes are held, want the pool's", host)
	}
}

var liveProbes = []string{probeLive, probeLiveOffload, probeLiveLoads, probeLiveFirst}

func plannedCase(p Point) (*liveCase, error) {
	switch p.Probe {
	case probeLive:
		return liveCaseOf(p, true)
	case probeLiveFirst:
		return firstCase(p)
	}
	return loadingCase(p)
}

// Every point of the plan has a server that does what the probe describes.
func TestPlannedLiveCases(t *testing.T) {
	least, most := int64(1<<50), int64(0)
	for _, p := range points(Full, fakeLimits) {
		if !slices.Contains(liveProbes, p.Probe) {
			continue
		}
		c, err := plannedCase(p)
		if err != nil {
			t.Errorf("%s: %v", p.Key(), err)
			continue
		}
		if need, err := c.deviceBytes(); err != nil || need > 128<<30 {
			t.Errorf("%s: %s of device memory, %v", p.Key(), size(need), err)
		}
		if p.Probe == probeLiveLoads {
			least, most = min(least, p.At("loads")), max(most, p.At("loads"))
		}
	}
	if least > 150 || most < 400 {
		t.Errorf("a layer loads %d to %d blocks", least, most)
	}
}
