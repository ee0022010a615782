package sim_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// The laws of the design, each on random configurations of the whole server.
// drive fails a test when a request that passed the check at its arrival stops
// the server, however tight the memory.

// Law 1: used + free = capacity in every tier and pool at every event, and all
// of it is free again once the requests have gone.
func TestLaw1BlocksAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		o := c.drive(t, func(o *outcome) error { return o.server.Check() })
		if left := o.server.Left(); left != (sim.Holdings{}) {
			t.Fatalf("left behind: %+v\n%v", left, c)
		}
	})
}

// Law 3: no KV is lost. Every full block of a live request is in DRAM, or held
// in HBM with a save under way, also while requests are preempted and set back.
func TestLaw3NoKVIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawOffloaded(t)
		o := c.start(t, profile(t, c.gpu))
		// Saves that complete long after their step meet every turn of a request's
		// life: set back, preempted, restarted, gone.
		o.spy.lag = des.Time(rapid.IntRange(0, 60).Draw(t, "lag")) * des.Millisecond
		o.spy.unaware = rapid.Bool().Draw(t, "unaware")
		o.run(t, c, o.server.Check)
	})
}

// Law 4: requests submitted = completed + rejected + in flight; tokens emitted
// = asked for; tokens prefilled = prompts + recomputed.
func TestLaw4RequestsAndTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		c.cutoff = metrics.Cutoff{}
		o := c.start(t, profile(t, c.gpu))
		var spared int64
		o.spy.begin = func() error {
			spared += o.server.HitBeyondLost()
			return nil
		}
		o.run(t, c, o.server.Check)
		sum := o.metrics.Summary()
		c.tiersAddUp(t, o.requests, sum)
		var done, refused, preempted, cut int
		var tokens, prompts int64
		seen := map[int]bool{}
		for _, r := range o.requests {
			if seen[r.ID] {
				t.Fatalf("law 4: request %d left twice\n%v", r.ID, c)
			}
			seen[r.ID] = true
			// Nothing is served, or refused, that is longer than what came.
			given := c.arrival(&r).Prompt
			if r.Given != given || r.Prompt > given {
				t.Fatalf("law 4: request %d came with %d prompt tokens, its record has %d and %d\n%v", r.ID,
					given, r.Given, r.Prompt, c)
			}
			if r.Rejected == "" && r.Prompt < given {
				cut++
			}
			preempted += r.Preemptions
			if r.Rejected != "" {
				refused++
				continue
			}
			done++
			tokens += int64(r.Output)
			prompts += int64(r.Prompt - c.hit(r))
		}
		if done != sum.Completed || refused != sum.Rejected || done+refused != sum.Requests ||
			refused == 0 && sum.Requests != len(c.arrivals) || preempted != sum.Preempted ||
			cut != sum.Truncated {
			t.Fatalf("law 4: %d arrived; %d done, %d refused, %d preemptions; summary %+v\n%v",
				len(c.arrivals), done, refused, preempted, sum, c)
		}
		// Every token but a request's first ends a gap.
		if emitted := int64(len(o.gaps) + done); emitted != tokens {
			t.Fatalf("law 4: %d tokens emitted, %d asked for\n%v", emitted, tokens, c)
		}
		computed, asked := o.spy.query, prompts*int64(c.model.Layers)
		again := sum.RecomputedTokens * int64(c.model.Layers)
		if computed+spared < asked+again || preempted == 0 && computed != asked {
			t.Fatalf("law 4: %d token-layers prefilled, %d asked for, %d computed again, %d preemptions\n%v",
				computed, asked, again, preempted, c)
		}
	})
}

// Law 5: time never runs back, for the clock, a request's life, or steps, of
// which one runs at a time.
func TestLaw5TimeRunsForward(t *testing.T) {
	draws(t, 100)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		last := des.Time(0)
		o := c.drive(t, func(o *outcome) error {
			if o.server.Now() < last {
				return fmt.Errorf("law 5: clock at %v after %v", o.server.Now(), last)
			}
			last = o.server.Now()
			return nil
		})
		for _, r := range o.requests {
			if r.Rejected == "" && (r.Scheduled < r.Arrival || r.FirstToken <= r.Scheduled ||
				r.LastToken < r.FirstToken) {
				t.Fatalf("law 5: %+v\n%v", r, c)
			}
		}
		end := des.Time(0)
		for i, s := range o.steps {
			if s.Index != int64(i) || s.Start < end || s.Timing.Elapsed <= 0 ||
				s.Timing.Elapsed != s.Timing.Phases.Sum() {
				t.Fatalf("law 5: step %d of %+v begins at %v, the one before ended at %v\n%v", i, s,
					s.Start, end, c)
			}
			end = s.Start + s.Timing.Elapsed
		}
	})
}

// Law 6: the bytes that a step loads take at least their time on the link, and
// what was saved by any moment took at least its own.
func TestLaw6LinkBandwidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.spec.Offload.On = true
		o := c.drive(t, nil)
		gpu := profile(t, c.gpu)
		block := float64(c.model.Geometry(c.spec.BlockTokens).BlockBytes)
		for _, s := range o.spy.ended {
			within := s.Timing.Phases.LoadStall
			// attends meanwhile; unused loads may reach into the next step
			if c.spec.Progressive() {
				within = s.Timing.Elapsed
			}
			if least := float64(s.Loads) * block / gpu.Link.H2D.SI(); !(c.spec.Progressive() &&
				c.spec.Selection.Pipelined) && within.Seconds() < least-1e-9*float64(c.model.Layers) {
				t.Fatalf("law 6: step %d loads %d blocks in %v, the link takes %v s\n%v", s.Index, s.Loads,
					within, least, c)
			}
			done := (s.Start + s.Timing.SavesDone - o.spy.ended[0].Start).Seconds()
			if least := float64(s.Saves) * block / gpu.Link.D2H.SI(); s.Timing.SavesDone > 0 &&
				done < least-1e-9*float64(s.Index+1)*float64(c.model.Layers) {
				t.Fatalf("law 6: %d blocks are saved within %v s, the link takes %v s\n%v", s.Saves,
					done, least, c)
			}
		}
	})
}

// Law 7: every KV head selects min(budget, existing) blocks, or as many as its algorithm decides;
// all in dense layers. That they exist and do not repeat is tested where streams are made.
func TestLaw7SelectionsHaveTheirSize(t *testing.T) {
	draws(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		c := drawOffloaded(t)
		c.spec.Simulation.Heads = "full"
		o := c.start(t, profile(t, c.gpu))
		var want []int64
		o.spy.begin = func() error {
			want = append(want, o.server.SelectedNow())
			return nil
		}
		o.run(t, c, o.server.Check)
		for i, s := range o.steps {
			if s.Selected != want[i] {
				t.Fatalf("law 7: step %d selects %d blocks, want %d\n%v", i, s.Selected, want[i], c)
			}
		}
	})
}

// Full attention by name of the selection is full attention.
func TestFullSelectionIsFullAttention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		if c.spec.Offload.Eviction == kv.ByScore {
			c.spec.Offload.Eviction = kv.LRU
		}
		c.spec.Selection.On = false
		want := c.drive(t, nil)
		c.spec.Selection.On, c.spec.Selection.Policy = true, "full"
		if got := c.drive(t, nil); !reflect.DeepEqual(got.log, want.log) {
			t.Fatalf("the runs differ\n%v", c)
		}
	})
}

// Law 8: with batch control the working sets of an admitted batch fit, at every
// step, or the batch has one request: by the server's estimates, and by a recount of what the
// decodes of a step select at the least.
func TestLaw8WorkingSetsFit(t *testing.T) {
	draws(t, 100)
	rapid.Check(t, func(t *rapid.T) { workingSetsFit(t, drawCrowd(t).vary(t)) })
}

// Law 8 where each query head selects for itself, and contexts have few blocks more than the budget
// or fewer: a block that opens is selected too.
func TestLaw8WorkingSetsOfQueryHeadsFit(t *testing.T) {
	draws(t, 60)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrowd(t)
		s := &c.spec
		s.Selection.On, s.Selection.Per, s.Offload.Eviction = true, sim.PerQueryHead, kv.LRU
		s.Selection.Policy = rapid.SampledFrom([]string{"arkvale", "quest"}).Draw(t, "fixed selection")
		s.BlockTokens = max(2, s.BlockTokens)
		s.Selection.BudgetTokens = s.BlockTokens * rapid.IntRange(5, 12).Draw(t, "budget blocks")
		workingSetsFit(t, c)
	})
}

func workingSetsFit(t *rapid.T, c *scenario) {
	o := c.start(t, profile(t, c.gpu))
	o.spy.begin = func() error {
		contexts := o.server.BatchContexts()
		if need := c.selects(contexts); len(contexts) > 1 && need > c.hbm {
			return fmt.Errorf("law 8: decodes of %d tokens select %d bytes of HBM, there are %d", contexts,
				need, c.hbm)
		}
		return o.server.CheckBatch()
	}
	o.run(t, c, nil)
}

// selects counts the bytes of the blocks that decodes select over all layers, their open ones
// included, with the metadata of full blocks. Of what its own algorithm decides it counts none.
func (c *scenario) selects(contexts []int) (bytes int64) {
	m, s, geo := &c.model, &c.spec, c.model.Geometry(c.spec.BlockTokens)
	for _, tokens := range contexts {
		blocks := (tokens + s.BlockTokens - 1) / s.BlockTokens
		for layer := range m.Layers {
			switch {
			case !s.Sparse() || layer < s.Selection.DenseLayers:
				bytes += int64(blocks*m.KVHeads) * geo.BlockBytes
			case s.Selection.Policy == "arkvale" || s.Selection.Policy == "quest":
				bytes += int64(min(blocks,
					s.Selection.BudgetTokens/s.BlockTokens)*m.KVHeads) * geo.BlockBytes
			}
			if s.Sparse() {
				bytes += int64(tokens/s.BlockTokens*m.KVHeads) * geo.MetaBytes
			}
		}
	}
	return bytes
}

// Law 9: the same configuration and seed give the same run, to the nanosecond.
func TestLaw9RunsRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		a, b := c.drive(t, nil), c.drive(t, nil)
		if !reflect.DeepEqual(a.log, b.log) ||
			!reflect.DeepEqual(a.metrics.Summary(), b.metrics.Summary()) {
			t.Fatalf("law 9: two runs differ\n%v", c)
		}
	})
}

// A device that prices layers of the same work at once gives the run of one that is called for
// each.
func TestRepeatedLayersAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.spec.Selection.On, c.spec.Selection.Policy, c.spec.Offload.On, c.spec.Offload.Eviction,
			c.addressed = false, "",
			false, "", false
		each := c.drive(t, nil)
		at := &outcome{server: c.server(t, c.modelled(t, profile(t, c.gpu)))}
		at.run(t, c, nil)
		if !reflect.DeepEqual(at.log, each.log) || !reflect.DeepEqual(at.metrics.Summary(),
			each.metrics.Summary()) {
			t.Fatalf("the runs differ\n%v", c)
		}
	})
}

// Law 10: no step is faster than its FLOPs at the card's peak or its weights
// and KV at the peak of HBM.
func TestLaw10StepsObeyPhysics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		gpu := profile(t, c.gpu)
		m := &c.model
		kvBytes := float64(m.LayerKVBytesPerToken())
		o := c.start(t, gpu)
		o.spy.floor = func(w *sim.Work) float64 {
			flops, bytes := 0.0, 0.0
			if !m.IsMixture() { // else it depends on the tokens' experts
				flops = 2 * float64(m.LayerLinears()) * float64(w.Tokens)
				bytes = float64(m.LayerWeightBytes())
			}
			for _, p := range w.Prefill {
				pairs := float64(p.Query)*float64(p.Prefix) + float64(p.Query)*float64(p.Query+1)/2
				if m.BoundTokens() == 0 {
					flops += 4 * pairs * float64(m.QHeads*m.HeadDim)
				}
			}
			if m.BoundTokens() > 0 {
				bytes += kvBytes * float64(w.BoundedTokens)
			} else {
				bytes += kvBytes * float64(w.DecodeTokens-w.RereadTokens)
			}
			peak := max(gpu.GPU.PeakFP16.SI(), gpu.GPU.PeakFP8.SI())
			return max(flops/peak, bytes/gpu.GPU.HBMBandwidth.SI())
		}
		o.run(t, c, nil)
		for _, s := range o.spy.ended {
			if s.Timing.Elapsed.Seconds() < s.Least {
				t.Fatalf("law 10: step %d takes %v, its work at peak %v s\n%v", s.Index, s.Timing.Elapsed,
					s.Least, c)
			}
		}
	})
}
