package figures

import (
	"slices"
	"testing"
)

// Runs that differ in their replicas are drawn against them, whether an axis or a list set them;
// where the load varies too, each fleet is a series.
func TestReplicasAreAnAxis(t *testing.T) {
	run := func(replicas int, rate float64) Run {
		return Run{System: "vllm", Replicas: replicas, Rate: rate, Completed: 9,
			TTFT: mean{1 / float64(replicas+1)}}
	}
	fleets := []Run{run(0, 1), run(2, 1), run(4, 1)}
	nameFleets(fleets)
	x := abscissaOf(fleets)
	nameSeries(fleets, x)
	if got := curves(fleets, bySystem, x.of,
		func(r *Run) float64 { return r.TTFT.Mean }); x.label != "Replicas" || len(got) != 1 ||
		len(got[0].points) != 3 || got[0].points[2].x != 4 {
		t.Errorf("against %s: %+v", x.label, got)
	}
	loads := []Run{run(0, 1), run(2, 1), run(0, 2), run(2, 2)}
	nameFleets(loads)
	if x := abscissaOf(loads); x.key != "" || loads[0].System == loads[1].System {
		t.Errorf("against %s: %s and %s", x.label, loads[0].System, loads[1].System)
	}
}

// Panels of one quantity have one axis of it.
func TestDistributionsShareTheirAxis(t *testing.T) {
	p := picture{}
	for _, end := range []float64{2, 30} {
		for _, label := range []string{"TTFT", "TBT"} {
			p.charts = append(p.charts,
				chart{x: label, curves: []curve{{series: "a", points: []point{{x: end / 2}, {x: end}}}}})
		}
	}
	p.charts[3].curves[0].points[1].x = 3
	p.shareAcross()
	if first, last := p.charts[0].across, p.charts[2].across; *first != *last || first.high < 30 {
		t.Errorf("TTFT from %+v to %+v", first, last)
	}
	if tbt := p.charts[1].across; tbt.high > 20 {
		t.Errorf("TBT on the axis of TTFT: %+v", tbt)
	}
}

// A note over a bar that the grown axis has taken in has room of its own.
func TestNotesFitAboveTheirBars(t *testing.T) {
	var g group
	for _, h := range []float64{0.35, 0.54, 0.7, 1.45, 6.18, 7.64} {
		g.bars = append(g.bars,
			bar{note: "7.64, unstable", parts: []part{{"a", point{mean: h, low: h, high: h}}}})
	}
	high := roomForNotes([]group{g}, 5.8)
	bars := slices.DeleteFunc(slices.Clone(g.bars), func(b bar) bool { return b.height().mean > high })
	tallest := bars[len(bars)-1].height().mean
	if above := (high - tallest) / high * float64(0.65*panelHeight); above < float64(
		noteStyle().Width("7.64, unstable")) {
		t.Errorf("axis to %g: %g points over a bar of %g", high, above, tallest)
	}
}
