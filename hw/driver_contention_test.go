package hw

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// waitingDevice is a device whose calls wait 2 us during saves, or none does.
func waitingDevice(t *testing.T, waits bool, opts DeviceOptions) *Device {
	t.Helper()
	p := mustProfile(t, "h200")
	p.Host.DriverContention = Figure{}
	if waits {
		p.Host.DriverContention = Figure{Value: 2, Unit: "us", From: Measured, Source: "a test"}
	}
	d, err := NewDevice(p, mustModel(t, "lwm-7b"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Calls wait for the driver while a memcpy a block saves: a gather's launch, the calls of a
// layer's round trip; loads with a memcpy a block hold the saves up instead, and what they wait
// does not outlast the saves. Other engines, and a queue that is empty, cost what they did.
func TestCallsQueueForTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		load, save  string
		saved       int64 // blocks, before the step's load of 100
		stall, host des.Time
	}{
		"memcpy both ways": {LoadMemcpy, SaveMemcpy, 100_000, 0, syncCalls * 2 * des.Microsecond},
		"one gather": {LoadFlash, SaveMemcpy, 100_000, 2 * des.Microsecond,
			syncCalls * 2 * des.Microsecond},
		"nothing saved": {LoadMemcpy, SaveMemcpy, 0, 0, 0},
		"FlashD2H":      {LoadMemcpy, SaveFlash, 100_000, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			opts := DeviceOptions{LoadEngine: c.load, SaveEngine: c.save, Offload: true,
				SaveBufferBytes: 1 << 40}
			plain, waiting := waitingDevice(t, false, opts), waitingDevice(t, true, opts)
			w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8 * 2048, ScoredBlocks: 8 * 400, Sparse: true}
			var got [2]sim.Timing
			for i, d := range []*Device{plain, waiting} {
				first := runStep(t, d, &sim.Step{}, 1, &sim.Work{Tokens: 2048}, 0, c.saved)
				got[i] = runStep(t, d, &sim.Step{Index: 1, Start: first.Elapsed}, 1, &w, 100, 0)
			}
			if more := got[1].Phases.LoadStall - got[0].Phases.LoadStall; more < c.stall-2 ||
				more > c.stall+2 {
				t.Errorf("loads take %v longer, want %v", more, c.stall)
			}
			if more := got[1].Phases.Host - got[0].Phases.Host; more != c.host {
				t.Errorf("the host takes %v longer, want %v", more, c.host)
			}
			if held := got[1].SavesDone > got[0].SavesDone; held != (name == "memcpy both ways") {
				t.Errorf("saves are done at %v, alone at %v", got[1].SavesDone, got[0].SavesDone)
			}
			if sum := got[1].Phases.Sum(); sum != got[1].Elapsed {
				t.Errorf("phases add up to %v of %v", sum, got[1].Elapsed)
			}
		})
	}
}

// Saves during loads go on at the pace that they then have, as long as the loads take,
// and no more of them wait than there are.
func TestSavesDuringLoadsKeepTheirPace(t *testing.T) {
	const block = 16 << 10
	w := driverContention{call: 1e-6, blocks: true}
	for name, c := range map[string]struct {
		saves int64 // of 2 us each
		held  des.Time
	}{
		"more than the loads last": {10_000, 100 * des.Microsecond}, // 300 us at 3 us each
		"fewer":                    {80, 80 * des.Microsecond},
		"few":                      {40, 40 * des.Microsecond},
	} {
		var q saveQueue
		q.push(c.saves*block, des.Time(c.saves)*2*des.Microsecond)
		work := q.work
		if got := w.loads(100, block, 300*des.Microsecond, &q); got != 0 || q.work-work != c.held {
			t.Errorf("%s: loads take %v longer and saves %v, want nothing and %v", name, got, q.work-work,
				c.held)
		}
	}
}

// Some saves hold the calls up no longer than they last.
func TestWaitsEndWithTheSaves(t *testing.T) {
	var q saveQueue
	q.push(1, 3*des.Microsecond)
	w := driverContention{call: 2e-6}
	if got := w.calls(layerCalls, &q); got != 3*des.Microsecond {
		t.Errorf("%v during saves of 3 us", got)
	}
	if got := w.loads(1000, 16<<10, des.Millisecond, &q); got > 3*des.Microsecond {
		t.Errorf("loads wait %v during saves of 3 us", got)
	}
	if got := (&driverContention{}).calls(layerCalls, &q); got != 0 {
		t.Errorf("%v without a figure", got)
	}
}
