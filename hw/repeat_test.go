package hw

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Layers repeated at once are to the nanosecond the layers one by one, through steps between which
// the clock rests and the engine plans ahead.
func TestRepeatIsEveryLayer(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *Profile, m *Model) {
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
			if whole != layers || at.clock != each.clock || at.engine.launched != each.engine.launched {
				t.Fatalf("%+v: at once\n%+v %+v\none by one\n%+v %+v", w, whole, at.clock, layers, each.clock)
			}
			now += whole.Elapsed
		}
	})
}

func mustDevice(t *rapid.T, p *Profile, m *Model, opts DeviceOptions) *Device {
	d, err := NewDevice(p, m, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func oneStep(t *rapid.T, d *Device, meta *sim.Step, layers func() error) sim.Timing {
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
