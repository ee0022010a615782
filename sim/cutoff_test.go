package sim_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// near compares figures whose sums were added up in another order.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }

// counted is a naive summary: what a person would count in the records of a run.
type counted struct {
	requests, completed, rejected, preempted, good int
	ttft, e2e, delay, tbt                          float64 // means
	requestsS, goodS, promptS, outputS             float64
	hbm, dram, gpu, h2d, d2h                       float64 // byte seconds, seconds
	steps                                          int64
}

// count counts what is left when some requests at both ends are left out.
func (o *outcome) count(c *scenario, from, to des.Time, warmup, drain int) (n counted) {
	seconds := (to - from).Seconds()
	var gaps int
	for _, r := range o.requests {
		if r.Rejected == "" && r.LastToken > from && r.LastToken <= to {
			n.requestsS += 1 / seconds
			n.promptS += float64(r.Prompt) / seconds
			if c.good(&r) {
				n.goodS += 1 / seconds
			}
		}
		if r.ID <= warmup || r.ID > len(c.arrivals)-drain {
			continue
		}
		n.requests++
		if r.Rejected != "" {
			n.rejected++
			continue
		}
		n.completed++
		n.preempted += r.Preemptions
		if c.good(&r) {
			n.good++
		}
		n.ttft += (r.FirstToken - r.Arrival).Seconds()
		n.e2e += (r.LastToken - r.Arrival).Seconds()
		n.delay += (r.Scheduled - r.Arrival).Seconds()
		n.tbt += (r.LastToken - r.FirstToken).Seconds()
		gaps += r.Output - 1
	}
	done := float64(max(1, n.completed))
	n.ttft, n.e2e, n.delay, n.tbt = n.ttft/done, n.e2e/done, n.delay/done, n.tbt/float64(max(1, gaps))
	var before des.Time
	for _, s := range o.steps {
		end := s.Start + s.Timing.Elapsed
		if end > from && end <= to {
			n.steps++
			n.outputS += float64(s.Tokens) / seconds
		}
		if inside := (min(end, to) - max(s.Start, from)).Seconds(); inside > 0 {
			n.hbm += float64(s.HBMBytes) * inside
			n.dram += float64(s.DRAMBytes) * inside
			part := inside / s.Timing.Elapsed.Seconds()
			n.gpu += part * s.Timing.Busy.GPU.Seconds()
			n.h2d += part * s.Timing.Busy.H2D.Seconds()
		}
		if s.Index == 0 {
			before = s.Start
		}
		if inside := (min(end, to) - max(before, from)).Seconds(); inside > 0 {
			n.d2h += inside / (end - before).Seconds() * s.Timing.Busy.D2H.Seconds()
		}
		before = end
	}
	return n
}

// Figures of a part of a run are a recount of its records, of which no refused request makes any
// better: it counts against the shares, and in no rate.
func TestLaw4FiguresOfAPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		rule := func(name string) string { return rapid.SampledFrom(metrics.CutRules).Draw(t, name) }
		c.cutoff = metrics.Cutoff{
			Warmup: rule("warmup"), WarmupShare: rapid.Float64Range(0, 0.5).Draw(t, "share"),
			Drain: rule("drain"), DrainShare: rapid.Float64Range(0, 0.49).Draw(t, "drain share"),
		}
		limit := des.Time(rapid.Int64Range(0, int64(20*des.Millisecond)).Draw(t, "bound"))
		c.good = func(r *metrics.Request) bool { return r.FirstToken-r.Arrival <= limit }
		o := c.drive(t, nil)
		sum := o.metrics.Summary()

		first, end := c.arrivals[0].At, des.Time(0)
		for _, r := range o.requests {
			end = max(end, r.LastToken)
		}
		from, to, warmup, drain := first, end, 0, 0
		if w := sum.Window; w != nil {
			if warmup, drain = w.Warmup, w.Drain; warmup > 0 {
				from = c.arrivals[warmup].At
			}
			if drain > 0 && c.arrivals[len(c.arrivals)-drain].At > from {
				to = c.arrivals[len(c.arrivals)-drain].At
			}
			if !near(w.FromS, from.Seconds()) || !near(w.ToS, to.Seconds()) {
				t.Fatalf("window %+v, want from %v to %v\n%v", w, from, to, c)
			}
			if n := len(c.arrivals); warmup < 0 || drain < 0 || warmup+drain >= n ||
				c.cutoff.Warmup == metrics.CutShare && warmup != int(c.cutoff.WarmupShare*float64(n)) ||
				c.cutoff.Warmup == metrics.CutNone && warmup > 0 || c.cutoff.Drain == metrics.CutNone &&
				drain > 0 {
				t.Fatalf("window %+v of %d requests\n%v", w, n, c)
			}
		} else if c.cutoff.On() {
			t.Fatalf("no window\n%v", c)
		}
		if to <= from {
			return // nothing was served
		}
		n := o.count(c, from, to, warmup, drain)
		if sum.Requests != n.requests || sum.Completed != n.completed || sum.Rejected != n.rejected ||
			sum.Preempted != n.preempted || sum.Steps != n.steps || sum.Requests != sum.Completed+
			sum.Rejected {
			t.Fatalf("summary %+v, counted %+v\n%v", sum, n, c)
		}
		share := float64(n.good) / float64(max(1, n.requests))
		figures := map[string][2]float64{
			"TTFT": {sum.TTFT.Mean, n.ttft}, "TBT": {sum.TBT.Mean, n.tbt}, "E2E": {sum.E2E.Mean, n.e2e},
			"delay": {sum.QueueDelay.Mean, n.delay}, "requests/s": {sum.RequestThroughput, n.requestsS},
			"goodput": {*sum.RequestGoodput, n.goodS}, "input": {sum.PromptTokS, n.promptS},
			"output": {sum.ThroughputTokS, n.outputS}, "both": {sum.TotalTokS, n.promptS + n.outputS},
			"good": {o.metrics.GoodShare(), share},
			"HBM":  {sum.HBMKVUse.Mean, n.hbm / (to - from).Seconds() / float64(c.hbm)},
			"card": {sum.HBMUse.Mean, 0.5 + n.hbm/(to-from).Seconds()/float64(2*c.hbm)},
		}
		if u := sum.GPUUse; u != nil {
			figures["GPU"] = [2]float64{u.Mean, n.gpu / (to - from).Seconds()}
		}
		if u := sum.H2DUse; u != nil {
			figures["H2D"] = [2]float64{u.Mean, n.h2d / (to - from).Seconds()}
			figures["D2H"] = [2]float64{sum.D2HUse.Mean, n.d2h / (to - from).Seconds()}
		}
		if u := sum.DRAMUse; u != nil {
			figures["DRAM"] = [2]float64{
				u.Mean, n.dram / (to - from).Seconds() / (c.spec.DRAMGiB * (1 << 30))}
		}
		for name, v := range figures {
			if !near(v[0], v[1]) {
				t.Fatalf("%s is %v, counted %v\n%+v\n%v", name, v[0], v[1], sum.Window, c)
			}
		}
		if o.metrics.GoodShare() > sum.ServedShare ||
			*sum.RequestGoodput > sum.RequestThroughput*(1+1e-12) {
			t.Fatalf("law 4: more are good than are served: %+v\n%v", sum, c)
		}
		said := warn.Has(sum.Warnings, warn.Window)
		if said != c.cutoff.On() {
			t.Fatalf("warnings of a cut-off %+v: %q", c.cutoff, sum.Warnings)
		}
	})
}

// What a run uses is there: HBM and DRAM hold it (law 2), the link had the time (law 6), and GPU
// and link work no longer than time passes.
func TestLaw2Law6UseIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		o := c.drive(t, nil)
		link := profile(t, c.gpu).Link
		var before, saving des.Time
		var saved float64
		for _, s := range o.steps {
			end := s.Start + s.Timing.Elapsed
			if most := c.hbm + o.server.Rounding(); s.HBMBytes < 0 || s.HBMBytes > most {
				t.Fatalf("law 2: step %d holds %d bytes in HBM of %d\n%v", s.Index, s.HBMBytes, most, c)
			}
			if most := int64(c.spec.DRAMGiB * (1 << 30)); c.spec.Offload.On && s.DRAMBytes > most {
				t.Fatalf("law 2: step %d holds %d bytes in DRAM of %d\n%v", s.Index, s.DRAMBytes, most, c)
			}
			busy := &s.Timing.Busy
			if e := s.Timing.Elapsed; busy.GPU < 0 || busy.GPU > e || busy.H2D < 0 || busy.H2D > e ||
				busy.D2H < 0 || busy.D2H > end-before {
				t.Fatalf("step %d of %v, %v after the one before: %+v\n%v", s.Index, e, end-before, busy, c)
			}
			if c.spec.Simulation.Heads != "sampled" { // whose loads are rounded layer by layer
				if most := link.H2D.SI()*busy.H2D.Seconds()*(1+1e-9) + 1; float64(s.H2DBytes) > most {
					t.Fatalf("law 6: step %d loads %d bytes in %v\n%v", s.Index, s.H2DBytes, busy.H2D, c)
				}
			}
			before, saving, saved = end, saving+busy.D2H, saved+float64(s.D2HBytes)
			if most := link.D2H.SI()*saving.Seconds() + c.spec.Offload.SaveBufferMiB*(1<<20) +
				1; saved > most*(1+1e-9) {
				t.Fatalf("law 6: by step %d %g bytes are saved in %v\n%v", s.Index, saved, saving, c)
			}
		}
	})
}
