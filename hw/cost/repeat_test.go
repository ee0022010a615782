package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Layers repeated at once, and steps like the one before, are to the nanosecond the layers one by
// one, through steps between which the clock rests and the engine plans ahead.
func TestRepeatIsEveryLayer(t *testing.T) {
	next := 0
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		opts := DeviceOptions{TopP: rapid.Bool().Draw(t, "topp")}
		at, each := mustDevice(t, p, m, opts), mustDevice(t, p, m, opts)
		now := des.Time(0)
		for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
			now += des.Time(logInt(t, 1e9, "pause") - 1)
			w := drawWork(t)
			w.Sparse, w.ScoredBlocks = false, 0
			if w.Tokens == 0 {
				continue
			}
			meta := sim.Step{Index: int64(step), Start: now, Requests: w.Decodes + len(w.Prefill),
				Sampled: w.Decodes}
			whole := oneStep(t, at, &meta, func() error { return at.Repeat(0, m.Layers, &w) })
			layers := oneStep(t, each, &meta, func() error {
				for layer := range m.Layers {
					if err := each.Compute(layer, &w); err != nil {
						return err
					}
				}
				return nil
			})
			if whole != layers || !sameClock(at, each) || at.engine.launched != each.engine.launched {
				t.Fatalf("%+v: at once\n%+v %+v\none by one\n%+v %+v", w, whole, at.clock, layers, each.clock)
			}
			now += whole.Elapsed
			for range rapid.IntRange(0, 3).Draw(t, "more steps") {
				meta.Index, meta.Start = meta.Index+1, now
				w.DecodeTokens += int64(w.Decodes)
				for i := range w.Prefill {
					w.Prefill[i].Prefix += w.Prefill[i].Query
				}
				layers := oneStep(t, each, &meta, func() error { return each.Repeat(0, m.Layers, &w) })
				whole, ok := at.Next(&meta, &w)
				if ok {
					next++
				} else {
					whole = oneStep(t, at, &meta, func() error { return at.Repeat(0, m.Layers, &w) })
				}
				if whole != layers || !sameClock(at, each) {
					t.Fatalf("%+v: like the one before\n%+v, by itself\n%+v", w, whole, layers)
				}
				now += whole.Elapsed
			}
		}
	})
	if next == 0 {
		t.Error("no step was like the one before")
	}
}

// A step like the one before waits for the host as it did, however slow that is.
func TestNextWaitsForTheHost(t *testing.T) {
	waited := 0
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		at, each := mustDevice(t, p, m, DeviceOptions{}), mustDevice(t, p, m, DeviceOptions{})
		ahead := rapid.Bool().Draw(t, "ahead")
		for _, d := range []*Device{at, each} {
			d.engine.overlaps, d.engine.step, d.engine.eager = ahead, 1e9, 1e8
		}
		w := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 1}
		meta := sim.Step{Requests: 1, Sampled: 1}
		for range 4 {
			layers := oneStep(t, each, &meta, func() error { return each.Repeat(0, m.Layers, &w) })
			whole, ok := metrics.Timing{}, false
			if meta.Index > 0 {
				whole, ok = at.Next(&meta, &w)
			}
			if !ok {
				whole = oneStep(t, at, &meta, func() error { return at.Repeat(0, m.Layers, &w) })
			} else if at.lagged > 0 {
				waited++
			}
			if whole != layers {
				t.Fatalf("like the one before\n%+v, by itself\n%+v", whole, layers)
			}
			meta.Index, meta.Start = meta.Index+1, meta.Start+whole.Elapsed
			w.DecodeTokens += 1000
		}
	})
	if waited == 0 {
		t.Error("no step waited for the host")
	}
}

// sameClock compares what devices know of their cards' clocks, where these have figures.
func sameClock(a, b *Device) bool { return a.clock == b.clock || a.clock.settling == 0 }

func mustDevice(t *rapid.T, p *hw.Profile, m *llm.Model, opts DeviceOptions) *Device {
	d, err := NewDevice(p, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func oneStep(t *rapid.T, d *Device, meta *sim.Step, layers func() error) metrics.Timing {
	if err := d.Begin(meta); err != nil {
		t.Fatal(err)
	}
	if err := layers(); err != nil {
		t.Fatal(err)
	}
	timing, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return timing
}
