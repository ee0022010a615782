package sim_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// ending ends a run's context as a step of that number is recorded, or refuses it.
type ending struct {
	log
	at   int
	stop context.CancelFunc
	err  error
}

func (e *ending) Step(r *metrics.Step) error {
	if err := e.log.Step(r); err != nil || len(e.steps) != e.at {
		return err
	}
	e.stop()
	return e.err
}

// drawDense draws a run without offloading or selection, of longer outputs, some of them in
// phases of nothing but decodes, and of prompts of many chunks.
func drawDense(t *rapid.T) *scenario {
	c := drawScenario(t)
	c.spec.Selection.On, c.spec.Selection.Policy, c.spec.Offload.On, c.spec.Offload.Eviction,
		c.addressed = false, "",
		false, "", false
	switch rapid.SampledFrom([]string{"plain", "plain", "indexed", "windowed"}).Draw(t, "class") {
	case "indexed":
		index(&c.model)
	case "windowed":
		window(c, rapid.IntRange(1, 40).Draw(t, "window"))
	}
	for i := range c.arrivals {
		a := &c.arrivals[i]
		a.Output *= rapid.SampledFrom([]int{1, 1, 4, 14}).Draw(t, "longer")
	}
	if rapid.Bool().Draw(t, "chunks") {
		drawChunks(t, c)
	} else {
		c.spec.MaxTokens = max(c.spec.MaxTokens, rapid.SampledFrom([]int{1, 100}).Draw(t, "most tokens"))
	}
	if rapid.Bool().Draw(t, "cut") {
		c.cutoff = metrics.Cutoff{Warmup: metrics.CutShare, WarmupShare: 0.2}
	}
	return c
}

// drawChunks draws prompts of up to hundreds of chunks, of which a step has room for one or more,
// or for a part of one beside its decodes, and memory that several prompts share or fill.
func drawChunks(t *rapid.T, c *scenario) {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	c.model.MaxContext, c.spec.Prefill.MaxPromptTokens = 4000, 0
	c.spec.PrefixCache.Mode, c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.SSDGiB = sim.PrefixOff, 0,
		0
	c.spec.Prefill.Split = rapid.SampledFrom([]string{"chunked", "chunked", "chunked",
		"layer-chunked"}).
		Draw(t, "in chunks")
	c.spec.Prefill.ChunkTokens = n("tokens of a chunk", 1, 30)
	c.spec.MaxTokens = c.spec.Prefill.ChunkTokens + rapid.SampledFrom([]int{0, 1, 10, 60}).Draw(t,
		"beside it")
	c.spec.MaxRequests = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "requests at a time")
	longest := 0
	for i := range c.arrivals {
		a := &c.arrivals[i]
		a.Prompt += rapid.SampledFrom([]int{0, 100, 500, 1000}).Draw(t, "more prompt")
		a.Output += rapid.SampledFrom([]int{0, 20, 200}).Draw(t, "more output")
		longest = max(longest, a.Prompt+a.Output)
	}
	geo := c.model.Geometry(c.spec.BlockTokens)
	all := int64(geo.Blocks(longest)) * int64(geo.Groups()) * geo.BlockBytes
	c.hbm = all * int64(n("tenths of the longest", 9, 50)) / 10
}

// Steps that are one event give the run of steps that are each an event: every record and gap in
// the same order, figures, the time at which it ends and the error, whether it comes to its end,
// is interrupted or is told to stop.
func TestLeapsAreTheSameAsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLeaps(t, drawEnding(t)) })
	leapt := 0
	for seed := range 60 { // the same each time
		leapt += checkLeaps(t, rapid.Custom(drawEnding).Example(seed))
	}
	if leapt == 0 {
		t.Error("no step was leapt")
	}
}

// dense is a drawn run and how it ends.
type dense struct {
	*scenario
	at, clients int
	refused     error
}

func drawEnding(t *rapid.T) dense {
	d := dense{scenario: drawDense(t)}
	d.at = rapid.SampledFrom([]int{0, 0, 1, 5, 20, 50}).Draw(t, "ends at step")
	if rapid.Bool().Draw(t, "refused") {
		d.refused = errors.New("refused")
	}
	d.clients = rapid.IntRange(0, 3).Draw(t, "clients")
	return d
}

// checkLeaps returns how many steps were leapt.
func checkLeaps(t fatal, c dense) (leapt int) {
	run := func(stepwise bool) (*ending, *sim.Server, *metrics.Run, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := c.server(t, c.modelled(t, profile(t, c.gpu)))
		if stepwise {
			s.Stepwise()
		}
		rec := &ending{at: c.at, stop: cancel, err: c.refused}
		m, err := s.Run(ctx, c.workload(c.clients), rec)
		return rec, s, m, err
	}
	each, stepped, m1, err1 := run(true)
	together, server, m2, err2 := run(false)
	if !reflect.DeepEqual(each.log, together.log) {
		t.Fatal(fmt.Sprintf("records differ\n%v", c))
	}
	if (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
		t.Fatal(fmt.Sprintf("errors %v and %v\n%v", err1, err2, c))
	}
	if !reflect.DeepEqual(m1, m2) {
		t.Fatal(fmt.Sprintf("metrics differ\n%+v\n%+v\n%v", m1, m2, c))
	}
	if stepped.Now() != server.Now() || err1 == nil && stepped.Left() != server.Left() {
		t.Fatal(fmt.Sprintf("ends at %v with %+v, and %v with %+v\n%v", stepped.Now(), stepped.Left(),
			server.Now(), server.Left(), c))
	}
	if steps := stepped.Leapt(); steps > 0 {
		t.Fatal(fmt.Sprintf("%d steps were leapt that were to be events", steps))
	}
	return server.Leapt()
}
