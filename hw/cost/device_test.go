package cost

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

var _ sim.Device = (*Device)(nil)

func newTestDevice(t testing.TB, gpu, model string, opts DeviceOptions) *Device {
	t.Helper()
	d, err := NewDevice(mustProfile(t, gpu), mustModel(t, model), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// One layer of a decode step by hand: host, scoring, round trip, loads,
// linears, sparse attention, head, and the rest of the layer's launches.
func TestDeviceTimelineByHand(t *testing.T) {
	d := newTestDevice(t, "a100-40gb", "lwm-7b",
		DeviceOptions{LoadEngine: LoadMemcpy, SaveEngine: SaveMemcpy, Offload: true,
			SaveBufferBytes: 1 << 30})
	w := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 400, Sparse: true}
	got := runStep(t, d, &sim.Step{Start: 7 * des.Second, Sampled: 1}, 1, &w, 100, 10)
	approx := func(name string, got des.Time, us float64) {
		t.Helper()
		if diff := got.Seconds()*1e6 - us; diff > 0.1 || diff < -0.1 {
			t.Errorf("%s: want %.2f us, got %v", name, us, got)
		}
	}
	p := &got.Phases
	idle := 710*des.Microsecond - p.Scoring - p.Linears - p.SparseAttention - p.Head
	approx("host", p.Host, 2500+30+idle.Seconds()*1e6)
	approx("scoring", got.Phases.Scoring, 20+400*32*512/1144e3)
	approx("load stall", got.Phases.LoadStall, 100*(6.3+16384/25.1e3))
	approx("linears", got.Phases.Linears, 348.8+24)
	approx("sparse attention", got.Phases.SparseAttention, 43+2048*16384/1087e3)
	approx("head", got.Phases.Head,
		348.8*4096*32000/(4*4096*4096+3*4096*11008)+(12*32000+4*4096)/1144e3)
	if got.Phases.SaveStall != 0 {
		t.Errorf("10 blocks stall the step for %v", got.Phases.SaveStall)
	}
	// K and V are there after a quarter of the weights: QKV has 3 of (4 + 3*11008/4096) hidden x
	// hidden.
	rest := des.Time((1 - 3/(4+3*11008./4096)) * float64(p.Linears))
	saved := got.Elapsed - idle - p.Head - p.SparseAttention - rest +
		nanoseconds(10*(4.2e-6+16384/25e9))
	if diff := got.SavesDone - saved; diff > 1 || diff < -1 {
		t.Errorf("saves done: want %v, got %v", saved, got.SavesDone)
	}
}

// The CPU launches layers with block selection one kernel after the other: a step whose GPU work is
// shorter waits for it, a longer one hides it, and dense layers have none.
func TestDeviceLaunchFloor(t *testing.T) {
	d := newTestDevice(t, "a100-40gb", "lwm-7b", DeviceOptions{})
	start := des.Time(0)
	run := func(w sim.Work) metrics.Timing {
		got := runStep(t, d, &sim.Step{Start: start, Sampled: w.Decodes}, 32, &w, 0, 0)
		start += got.Elapsed
		return got
	}
	const host = 2500 * des.Microsecond
	short := run(sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048, ScoredBlocks: 400, Sparse: true})
	if want := host + 32*710*des.Microsecond; short.Elapsed != want {
		t.Errorf("one sparse decode: want %v, what 32 layers take to launch, got %v", want, short.Elapsed)
	}
	if got := short.Phases.Sum(); got != short.Elapsed {
		t.Errorf("phases add up to %v of %v", got, short.Elapsed)
	}
	for name, w := range map[string]sim.Work{
		"32 sparse decodes": {Tokens: 32, Decodes: 32, DecodeTokens: 32 * 2048, ScoredBlocks: 32 * 400,
			Sparse: true},
		"a dense decode": {Tokens: 1, Decodes: 1, DecodeTokens: 2048},
	} {
		if got := run(w); got.Phases.Host != host {
			t.Errorf("%s: want %v of host time, got %v", name, host, got.Phases.Host)
		}
	}
}

// Saves stall the step only beyond the buffer, and the queue outlives it.
func TestDeviceSaveQueueAcrossSteps(t *testing.T) {
	const blocks, block = 2048, 16 << 10
	w := sim.Work{Tokens: 1}
	drain := nanoseconds(blocks * (4.2e-6 + block/25e9))
	for _, c := range []struct {
		buffer int64
		stall  des.Time // of the second layer
	}{
		{2 * blocks * block, 0},
		{0, drain},
	} {
		d := newTestDevice(t, "a100-40gb", "lwm-7b",
			DeviceOptions{SaveEngine: SaveMemcpy, SaveBufferBytes: c.buffer})
		first := runStep(t, d, &sim.Step{}, 2, &w, 0, blocks)
		if want := 2 * c.stall; first.Phases.SaveStall != want {
			t.Errorf("buffer %d: stall %v, want %v", c.buffer, first.Phases.SaveStall, want)
		}
		if c.buffer == 0 {
			if first.SavesDone > first.Elapsed {
				t.Errorf("synchronous saves end at %v, after the step's %v", first.SavesDone, first.Elapsed)
			}
			continue
		}
		left := first.SavesDone - first.Elapsed
		if left <= 0 {
			t.Fatalf("the queue should outlive the step: %v, %v", first.SavesDone, first.Elapsed)
		}
		gap := left / 3
		second := runStep(t, d, &sim.Step{Start: first.Elapsed + gap}, 0, &w, 0, 0)
		if second.SavesDone != left-gap {
			t.Errorf("after a gap of %v, %v of the queue's %v should be left, got %v", gap, left-gap, left,
				second.SavesDone)
		}
		third := runStep(t, d, &sim.Step{Start: first.Elapsed + 10*left}, 0, &w, 0, 0)
		if third.SavesDone != 0 {
			t.Errorf("a long idle gap drains the queue, got %v", third.SavesDone)
		}
	}
}

// Loads and saves at once share the link's limit for both directions.
func TestDeviceDuplex(t *testing.T) {
	opts := DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40}
	stall := func(saves int64) des.Time {
		d := newTestDevice(t, "a100-40gb", "lwm-7b", opts)
		w := sim.Work{Tokens: 1}
		step := sim.Step{Start: runStep(t, d, &sim.Step{}, 1, &w, 0, saves).Elapsed}
		return runStep(t, d, &step, 1, &w, 100000, 0).Phases.LoadStall
	}
	alone, shared := stall(0), stall(10_000_000)
	ratio := float64(shared) / float64(alone)
	if want := (23.3 + 25.0) / 33.4; ratio < want*0.99 || ratio > want*1.01 {
		t.Errorf("loads during saves take %.3f times as long, want %.3f", ratio, want)
	}
}

func TestDeviceRejectsMisuse(t *testing.T) {
	w := sim.Work{Tokens: 1}
	newDevice := func() *Device { return newTestDevice(t, "a100-40gb", "lwm-7b", DeviceOptions{}) }
	begun := func() *Device {
		d := newDevice()
		if err := d.Begin(&sim.Step{Start: des.Second}); err != nil {
			t.Fatal(err)
		}
		return d
	}
	ended := func() *Device {
		d := begun()
		if _, err := d.Finish(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, err := range map[string]error{
		"score outside":   newDevice().Score(0, &w),
		"move outside":    newDevice().Move(&kv.Moves{}),
		"compute outside": newDevice().Compute(0, &w),
		"begin twice":     begun().Begin(&sim.Step{}),
		"time runs back":  ended().Begin(&sim.Step{Start: des.Second / 2}),
		"no load engine":  begun().Move(&kv.Moves{Loads: 1, BlockBytes: 1}),
		"no save engine":  begun().Move(&kv.Moves{Saves: 1, BlockBytes: 1}),
		"negative loads":  begun().Move(&kv.Moves{Loads: -1, BlockBytes: 1}),
		"negative joined": begun().Move(&kv.Moves{Joined: -1, BlockBytes: 1}),
	} {
		if err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	if _, err := newDevice().Finish(); err == nil {
		t.Error("finish outside: want an error")
	}
	for name, opts := range map[string]DeviceOptions{
		"load engine":     {LoadEngine: "flsh"},
		"save engine":     {SaveEngine: "cpu"},
		"scatter threads": {SaveEngine: SaveFlash, ScatterThreads: -1},
		"save buffer":     {SaveBufferBytes: -1},
	} {
		_, err := NewDevice(mustProfile(t, "h200"), mustModel(t, "lwm-7b"), opts)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: want an error that names it, got %v", name, err)
		}
	}
}

func TestDeviceExtrapolationNotes(t *testing.T) {
	d := newTestDevice(t, "a100-40gb", "llama3-8b",
		DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, ScatterThreads: 64})
	quiet := newTestDevice(t, "a100-40gb", "lwm-7b", DeviceOptions{})
	w := sim.Work{Tokens: 1000, Prefill: []sim.Span{{Query: 1000}}}
	if got := runStep(t, quiet, &sim.Step{}, 2, &w, 0, 0); got.Extrapolated != 0 {
		t.Errorf("nothing was extrapolated, got %v", quiet.ExtrapolationNotes(got.Extrapolated))
	}
	w = sim.Work{Tokens: 9000, Prefill: []sim.Span{{Query: 100}, {Query: 8900}}, Decodes: 1,
		DecodeTokens: 1 << 22}
	dense := runStep(t, d, &sim.Step{DRAMBytes: 128 << 30}, 2, &w, 5, 5)
	again := runStep(t, d, &sim.Step{Start: dense.Elapsed, DRAMBytes: 128 << 30}, 2, &w, 5, 5)
	if again.Extrapolated != dense.Extrapolated {
		t.Errorf("the same step twice: bits %b, then %b", dense.Extrapolated, again.Extrapolated)
	}
	w.Sparse = true
	sparse := runStep(t, d, &sim.Step{Start: dense.Elapsed + again.Elapsed}, 2, &w, 0, 0)
	w.Rounds = []sim.Round{{Tokens: 1 << 22}}
	psa := runStep(t, d, &sim.Step{Start: dense.Elapsed + again.Elapsed + sparse.Elapsed}, 2, &w, 0, 0)
	notes := strings.Join(warn.Texts(d.ExtrapolationNotes(
		dense.Extrapolated|sparse.Extrapolated|psa.Extrapolated)), "\n")
	for _, want := range []string{
		"no measured points for llama3-8b", "9000 tokens, measured 1 to 4096",
		"chunks of 100 tokens, measured from 512",
		"pool of 128.0 GiB, measured to 64 GiB", "64 scatter threads",
		"progressive attention: no measured points on a100-40gb",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	next := newTestDevice(t, "a100-40gb", "llama3-8b", DeviceOptions{})
	if next.ShareNotes(d); !strings.Contains(
		strings.Join(warn.Texts(next.ExtrapolationNotes(dense.Extrapolated)), "\n"),
		"chunks of 100 tokens") {
		t.Error("a device that shares notes does not know what the other was asked")
	}
	const here = noteSparsePrefill // that was measured on this card, and the model is plain
	if n := strings.Count(notes, "\n") + 1; n != here {
		t.Errorf("want %d notes, got %d:\n%s", here, n, notes)
	}
}

func TestDeviceAllocatesNothing(t *testing.T) {
	d := newTestDevice(t, "a100-40gb", "lwm-7b",
		DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true,
			SaveBufferBytes: 1 << 28})
	work := mixedBatch()
	s := sim.Step{Sampled: 8}
	run := func() {
		s.Start += runStep(t, d, &s, 32, &work[s.Index%2], 300, 40).Elapsed
		s.Index++
	}
	run()
	run()
	if n := testing.AllocsPerRun(50, run); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// mixedBatch is two hybrid batches: eight decodes and a prefill chunk.
func mixedBatch() []sim.Work {
	a := sim.Work{Tokens: 2056, Prefill: []sim.Span{{Query: 2048, Prefix: 4096}}, Decodes: 8,
		DecodeTokens: 8 * 2048, ScoredBlocks: 3200, Sparse: true}
	b := a
	b.Prefill = []sim.Span{{Query: 1024, Prefix: 6144}, {Query: 1024}}
	return []sim.Work{a, b}
}

func BenchmarkDeviceLayer(b *testing.B) {
	for _, c := range []struct {
		name      string
		alternate int64
	}{{"same-work", 0}, {"new-work", 1}} {
		b.Run(c.name, func(b *testing.B) {
			d := newTestDevice(b, "a100-40gb", "lwm-7b",
				DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true,
					SaveBufferBytes: 1 << 28})
			work := mixedBatch()
			moves := kv.Moves{Loads: 300, Saves: 40, BlockBytes: 16 << 10}
			s := sim.Step{Sampled: 8}
			if err := d.Begin(&s); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				w := &work[i&c.alternate]
				if d.Score(0, w) != nil || d.Move(&moves) != nil || d.Compute(0, w) != nil {
					b.Fatal("a call failed")
				}
			}
		})
	}
}
