package calibrate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sparseserve/sim"
	"sparseserve/sim/kv"
)

// BenchmarkLookups is what the host looks up in a layer of four requests of
// LWM-7B's shape, everything in HBM, by what the probes of the live loop leave
// out: longer prompts and more layers.
func BenchmarkLookups(b *testing.B) {
	for _, prompt := range []int{3072, livePrompt, 2 * livePrompt} {
		for _, layers := range []int{6, 32} {
			b.Run(fmt.Sprintf("%d tokens, %d layers", prompt, layers), func(b *testing.B) { benchmarkLookups(b, prompt, layers) })
		}
	}
}

func benchmarkLookups(b *testing.B, prompt, layers int) {
	m, err := shapeModel(shapes[0])
	if err != nil {
		b.Fatal(err)
	}
	model := *m
	model.Layers = layers
	const requests, settling = 4, 50
	c := newLiveCase(&model, probeLiveOffload, requests)
	c.prompt = prompt
	cfg := c.server()
	cfg.Model.MaxContext = 1 << 20
	cfg.HBMBytes, cfg.Spec.DRAMGiB = 1<<40, 1<<10
	d := &lookups{requests: requests}
	cfg.Device = d
	server, err := sim.NewServer(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if _, err := server.Run(context.Background(), &equalRequests{requests, prompt, settling + b.N}, &hostTimes{requests: requests}); err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	last := d.steps[max(0, len(d.steps)-b.N):]
	for _, t := range last {
		sum += t
	}
	b.ReportMetric(float64(sum.Nanoseconds())/1e3/float64(len(last)*layers), "us/layer")
}

// lookups times what the server does between a layer's selection and its
// attention, in steps that only decode.
type lookups struct {
	idle
	requests int
	decodes  bool
	from     time.Time
	step     time.Duration
	steps    []time.Duration
}

func (d *lookups) Begin(s *sim.Step) error {
	d.step, d.decodes = 0, s.Requests == d.requests
	for i := range s.Rows {
		d.decodes = d.decodes && s.Rows[i].Decode
	}
	return nil
}

func (d *lookups) Score(int, *sim.Work) error {
	d.from = time.Now()
	return nil
}

func (d *lookups) Move(*kv.Moves) error { return nil }

func (d *lookups) Compute(int, *sim.Work) error {
	d.step += time.Since(d.from)
	return nil
}

func (d *lookups) Finish() (sim.Timing, error) {
	if d.decodes {
		d.steps = append(d.steps, d.step)
	}
	return d.idle.Finish()
}
