package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// driverContention is what calls of two threads wait for the driver's lock.
type driverContention struct{}

const (
	probeCallsNone = "calls.nothing"
	probeCallsSave = "calls.save_memcpy"
)

func (driverContention) probes() []Probe {
	const calls = "launches of an empty kernel and copies of 16 KiB to the GPU, alternating; host " +
		"time of the calls only"
	axes := []string{"launches", "copies"}
	return []Probe{
		{Name: probeCallsNone, setup: (*gpuRun).setupCalls, Means: calls,
			Axes: axes, again: always},
		{Name: probeCallsSave, setup: (*gpuRun).setupCalls, Means: calls +
			", while a second thread saves with a memcpy a block without pause",
			Axes: axes, again: always},
	}
}

// points have up to 96 calls of one kind: a stream holds many more before a call has to wait
// for the GPU.
func (driverContention) points(p *planner) {
	for _, n := range [][2]int64{{64, 1}, {1, 64}, {16, 16}, {48, 48}} {
		p.add(stageDriver, point(probeCallsNone, "", n[0], n[1]), point(probeCallsSave, "", n[0], n[1]))
	}
}

// fit finds by how much a call of the driver is longer while another thread
// saves blocks one by one: calls of two threads queue for the driver's lock.
//
//	t = uncontended + (launches + copies) wait
func (driverContention) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.DriverContention = hw.Figure{}
	longer := s.of(probeCallsSave).beyond(s.of(probeCallsNone), pointKey)
	if len(longer) > 0 {
		calls := func(at observation) float64 { return float64(at.At("launches") + at.At("copies")) }
		if wait := shareOf(longer, calls); wait > 0 {
			p.Host.DriverContention = from.us(
				wait, "a launch or small copy while another thread saves with a memcpy a block, "+
					"over the same without it")
		}
	}
	return nil
}

// setupCalls readies launches and small copies, alternating, while a second thread copies 16 KiB
// blocks one by one: the calls of both queue for the driver.
func (g *gpuRun) setupCalls(p Point) *setup {
	const count, block = 4096, 16 * kib
	t := &setup{bench: cuda.Bench{Clock: cuda.SubmitClock}, settle: settled}
	src, bytes := g.host(gib)
	up := &cuda.MemcpyArgs{Dst: g.poisoned(block), Src: src, Bytes: block}
	t.verify = func() { g.copied(up, up.Dst, bytes[:block]) }
	launches, copies := p.At("launches"), p.At("copies")
	for i := range max(launches, copies) {
		if i < launches {
			t.bench.Calls = append(t.bench.Calls, &cuda.EmptyArgs{})
		}
		if i < copies {
			t.bench.Calls = append(t.bench.Calls, up)
		}
	}
	if p.Probe == probeCallsSave {
		c := g.saveAnywhere(probeSaveMemcpy, count, block, basePool*mib, 0)
		t.overlap, t.verify = c.calls, both(t.verify, c.verify)
	}
	return t
}
