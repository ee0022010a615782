package sim_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Law 6, of cached prefixes: what is asked of a link or a drive from one moment on takes at least
// its time on it until all of it is there, steps' own loads included.
func TestLaw6PrefixTiersMoveAtTheirRates(t *testing.T) {
	draws(t, 150)
	moved := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := drawTiered(t)
		apart := rapid.SampledFrom([]des.Time{0, 1, 20}).Draw(t, "apart")
		for i := range c.arrivals { // so that transfers meet
			c.arrivals[i].At = des.Time(i/4) * apart * des.Millisecond
		}
		c.hbm *= 3
		if rapid.Bool().Draw(t, "all loads") {
			c.spec.PrefixCache.Load, c.spec.PrefixCache.LoadTokens, c.spec.PrefixCache.Overlap =
				sim.LoadAlways, 0,
				sim.OverlapRequest
		}
		// Transfers of few bytes that take as long as steps do.
		slower := pick2(t, "slower", 1, 1e-3, 1e-4)
		gpu := fasterLink(profile(t, c.gpu), slower)
		drive, err := hw.LoadDrive("pm9a3")
		if err != nil {
			t.Fatal(err)
		}
		drive.Read.Value *= slower / 30 // slower than the link
		drive.Write.Value *= slower
		d, err := cost.NewDevice(gpu, &c.model, cost.DeviceOptions{
			Prefix: cost.PrefixOptions{Drive: drive, GPUs: 1, Chunk: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		o := &outcome{spy: &spy{Device: d}}
		o.server = c.server(t, o.spy)
		o.run(t, c, nil)
		bytes := func(m *carried) int64 { return m.bytes }
		ssd := func(m *carried) int64 { return m.ssd }
		done := func(m *carried) des.Time { return m.done }
		onSSD := func(m *carried) des.Time { return m.onSSD }
		for _, way := range []struct {
			name string
			all  []carried
			of   func(*carried) int64
			done func(*carried) des.Time
			rate float64
		}{
			{"loads over the link", o.spy.fetched, bytes, done, gpu.Link.H2D.SI()},
			{"reads of SSD", o.spy.fetched, ssd, done, drive.Read.SI()},
			{"saves over the link", o.spy.kept, bytes, done, gpu.Link.D2H.SI()},
			{"writes to SSD", o.spy.kept, ssd, onSSD, drive.Write.SI()},
		} {
			for i := range way.all {
				var sum int64
				end := way.all[i].at
				for j := i; j < min(len(way.all), i+20); j++ {
					if m := &way.all[j]; way.of(m) > 0 {
						sum, end = sum+way.of(m), max(end, way.done(m))
						moved[way.name]++
					}
					if takes, least := (end - way.all[i].at).Seconds(),
						float64(sum)/way.rate; takes < least*(1-1e-9) {
						t.Fatalf("law 6: %s: %d bytes asked for from %v on are there after %g s, they take %g\n%v",
							way.name, sum, way.all[i].at, takes, least, c)
					}
				}
			}
		}
	})
	if len(moved) < 4 {
		t.Errorf("moved: %v", moved)
	}
}

// Law 6, of hot buffers: a step waits for the blocks that its decodes miss.
func TestLaw6HotBuffersLoadAtTheLinksRate(t *testing.T) {
	draws(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		c := drawHot(t)
		o := c.drive(t, nil)
		gpu := profile(t, c.gpu)
		block := float64(c.model.Geometry(c.spec.BlockTokens).BlockBytes)
		for _, s := range o.spy.ended {
			if least := float64(s.Loads) * block /
				gpu.Link.H2D.SI(); s.Timing.Phases.LoadStall.Seconds() < least*(1-1e-9) {
				t.Fatalf("law 6: step %d loads %d blocks in %v, the link takes %v s\n%v", s.Index, s.Loads,
					s.Timing.Phases.LoadStall, least, c)
			}
		}
	})
}

// Law 6, of any memory: what steps load from one on, prefixes too, takes its time on the link until
// they end. Unused loads of progressive attention may reach into the next step.
func TestLaw6LoadsOfAnyMemory(t *testing.T) {
	draws(t, 100)
	loaded := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		gpu := fasterLink(profile(t, c.gpu), pick2(t, "slower", 1, 1e-2, 1e-4))
		o := c.start(t, gpu)
		o.run(t, c, nil)
		block := float64(c.model.Geometry(c.spec.BlockTokens).BlockBytes)
		steps, next := o.spy.ended, 0
		if c.spec.Progressive() && c.spec.Selection.Pipelined {
			next = 1
		}
		for i := range steps {
			var bytes float64
			for j := i; j+next < min(len(steps), i+10); j++ {
				bytes += float64(steps[j].Loads)*block + float64(steps[j].Prefix.Bytes)
				loaded[steps[j].Prefix.Bytes > 0] += int(steps[j].Loads)
				last := &steps[j+next]
				within := (last.Start + last.Timing.Elapsed - steps[i].Start).Seconds()
				if least := bytes / gpu.Link.H2D.SI(); within < least-1e-9*float64(c.model.Layers*(j-i+1)) {
					t.Fatalf("law 6: steps %d to %d load %g bytes in %g s, the link takes %g s\n%v", i, j,
						bytes, within, least, c)
				}
			}
		}
	})
	if loaded[false] == 0 {
		t.Errorf("loaded: %v", loaded)
	}
}
