package answers

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// TestPicturesOfRuns holds the numbers that pictures of small fixed results have.
func TestPicturesOfRuns(t *testing.T) {
	for _, of := range []string{"one-model", "two-models", "seeds", "time"} {
		folder := filepath.Join("testdata", "runs", of)
		d, err := Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		paths, err := figures.Draw(t.Context(), t.TempDir(), d.Figures, "svg")
		if err != nil || len(paths) < 3 {
			t.Fatalf("drew %v, %v", paths, err)
		}
		var numbers bytes.Buffer
		if err := show.CSV(&numbers, &doc.Doc{Figures: d.Figures}); err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, filepath.Join("runs", of, "golden.csv"), numbers.String())
	}
}

// drawnOf are the figures of runs by name.
func drawnOf(t *testing.T, r *Runs) map[string]*doc.Figure {
	t.Helper()
	r.Unit = "requests/s"
	all, err := r.Figures()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]*doc.Figure{}
	for i := range all {
		of[all[i].Name] = &all[i]
	}
	return of
}

// sweepOf has a run for each setting of a sweep.
func sweepOf(settings ...map[string]any) *Runs {
	r := &Runs{Settings: settings}
	for i, set := range settings {
		s := metrics.Summary{System: "sparseserve", Model: "lwm-7b", GPU: "a100-40gb", Seed: 1, Rate: 0.1,
			Requests: 40, Completed: 40, TTFT: metrics.Stats{Mean: float64(1 + i)}}
		if rate, ok := set["workload.rate"].(float64); ok {
			s.Rate = rate
		}
		if card, ok := set["gpu"].(string); ok {
			s.GPU = card
		}
		r.Sums = append(r.Sums, s)
	}
	return r
}

// Pictures are drawn against what varies: the load, else the setting with the most values. Where
// nothing varies by number they have bars.
func TestAbscissa(t *testing.T) {
	type set = map[string]any
	for name, c := range map[string]struct {
		runs  *Runs
		label string
	}{
		"rate": {sweepOf(set{"workload.rate": 0.1}, set{"workload.rate": 0.2}), "Rate (req/s)"},
		"budget": {sweepOf(set{"selection.budget_tokens": 512.0}, set{"selection.budget_tokens": 4096.0}),
			"budget_tokens"},
		"kv":   {sweepOf(set{"system.kv_gib": 4.0}, set{"system.kv_gib": 8.0}), "kv_gib"},
		"text": {sweepOf(set{"prefill.split": "layer"}, set{"prefill.split": "chunked"}), ""},
		"none": {sweepOf(nil), ""},
	} {
		chart := drawnOf(t, c.runs)["ttft"].Charts[0]
		if chart.X != c.label || (len(chart.Bars) > 0) != (c.label == "") {
			t.Errorf("%s: drawn against %q, with %d bars", name, chart.X, len(chart.Bars))
		}
	}
	closed := &Runs{Sums: []metrics.Summary{{Completed: 1, Concurrency: 16}, {Completed: 1,
		Concurrency: 4}}}
	if c := drawnOf(t, closed)["ttft"].Charts[0]; c.X != "Concurrency (clients)" ||
		len(c.Lines) != 1 || c.Lines[0].Points[0].X != 4 {
		t.Errorf("a closed loop is drawn against %q: %+v", c.X, c.Lines)
	}
}

// Legends say what numbers are, and leave out what all runs share. Variants are not averaged as if
// they were seeds.
func TestSeriesAreNamedByWhatDiffers(t *testing.T) {
	r := sweepOf(
		map[string]any{"workload.rate": 0.1, "selection.budget_tokens": 512.0,
			"offload.batch_control": false, "offload.working_set_steps": 4.0},
		map[string]any{"workload.rate": 0.2, "selection.budget_tokens": 1024.0,
			"offload.batch_control": true, "offload.working_set_steps": 4.0})
	for i, l := range drawnOf(t, r)["ttft"].Charts[0].Lines {
		want := "SparseServe, " + []string{"batch_control=false, budget_tokens=512",
			"batch_control=true, budget_tokens=1024"}[i]
		if l.Name != want || len(l.Points) != 1 || l.Points[0].N != 1 {
			t.Errorf("series is %+v, want %q", l, want)
		}
	}
}

// A sweep over cards has a chart a card, named, on one axis.
func TestPanelsNameTheCard(t *testing.T) {
	type set = map[string]any
	f := drawnOf(t, sweepOf(set{"workload.rate": 0.1}, set{"workload.rate": 0.2},
		set{"workload.rate": 0.1, "gpu": "h200"}, set{"workload.rate": 0.2, "gpu": "h200"}))["ttft"]
	if len(f.Charts) != 2 || f.Charts[0].Title != "(a) a100-40gb" || f.Charts[1].Title != "(b) h200" ||
		!slices.Equal(f.Charts[0].YEnds, f.Charts[1].YEnds) {
		t.Errorf("charts are %+v", f.Charts)
	}
}

// Runs that differ in their replicas are drawn against them, whether an axis or a list set them;
// where the load varies too, each fleet is a series.
func TestReplicasAreAnAxis(t *testing.T) {
	run := func(replicas int, rate float64) metrics.Summary {
		return metrics.Summary{System: "vllm", Replicas: replicas, Rate: rate, Completed: 9,
			TTFT: metrics.Stats{Mean: 1 / float64(replicas+1)}}
	}
	c := drawnOf(t, &Runs{Sums: []metrics.Summary{run(0, 1), run(2, 1), run(4, 1)}})["ttft"].Charts[0]
	if c.X != "Replicas" || len(c.Lines) != 1 || len(c.Lines[0].Points) != 3 ||
		c.Lines[0].Points[2].X != 4 {
		t.Errorf("against %s: %+v", c.X, c.Lines)
	}
	several := &Runs{Sums: []metrics.Summary{run(0, 1), run(2, 1), run(0, 2), run(2, 2)}}
	c = drawnOf(t, several)["ttft"].Charts[0]
	if c.X != "Rate (req/s)" || len(c.Lines) != 2 || c.Lines[1].Name != "vLLM x2" {
		t.Errorf("against %s: %+v", c.X, c.Lines)
	}
}

// Goodput counts single requests by its axis, because the table judges statistics.
func TestGoodputIsOfSingleRequests(t *testing.T) {
	good := 0.5
	c := drawnOf(t, &Runs{Sums: []metrics.Summary{
		{System: "a", Rate: 1, Completed: 10, RequestGoodput: &good},
		{System: "a", Rate: 2, Completed: 10, RequestGoodput: &good}}})["goodput"].Charts[0]
	if c.Y != "Requests within SLO, each by itself (req/s)" {
		t.Errorf("the axis is %q", c.Y)
	}
}

// A mean of runs whose queue was unstable, or that refused requests, says so.
func TestDoubtsAreDrawn(t *testing.T) {
	c := drawnOf(t, &Runs{Sums: []metrics.Summary{{System: "a", Rate: 1, Completed: 10},
		{System: "a", Rate: 2, Completed: 8, Rejected: 2}, {System: "b", Rate: 1, Completed: 10},
		{System: "b", Rate: 2, Completed: 10, Warnings: []warn.Warning{warn.New(warn.WaitsGrow, "x")}},
		{System: "c", Rate: 1, Completed: 10}, {System: "c", Rate: 2, Completed: 10,
			Warnings: []warn.Warning{warn.New(warn.UnstableQueue, "x"), warn.New(warn.WaitsGrow, "x")}},
	}})["ttft"].Charts[0]
	for i, want := range [][2]string{{"", "requests rejected"}, {"", "waits grow"},
		{"", "unstable queue"}} {
		for j, p := range c.Lines[i].Points {
			if got := strings.Join(p.Doubts(), ", "); got != want[j] {
				t.Errorf("%s at %g: %q, want %q", c.Lines[i].Name, p.X, got, want[j])
			}
		}
	}
}

// Bars have the parts that some bar has, and all of the step's time. Of a live run that needs the
// time of the steps that were not split.
func TestPhasesOfSteps(t *testing.T) {
	of := func(live bool, phases map[string]float64) *Runs {
		s := metrics.Summary{System: "vllm", Completed: 1, Steps: 2, Rate: 1, PhaseS: phases}
		if live {
			s.Live = &metrics.LiveStats{}
		}
		return &Runs{Sums: []metrics.Summary{s}}
	}
	type phases = map[string]float64
	for _, c := range []struct {
		runs  *Runs
		parts []string
		total float64
	}{
		{of(false, phases{"linears": 3, "head": 1, "scoring": 0}), []string{"linears", "LM head"}, 2000},
		{of(false, phases{"linears": 0}), nil, 0},
		{of(true, phases{"linears": 3}), nil, 0},
		{of(true, phases{"linears": 3, "unsplit": 0}), []string{"linears"}, 1500},
		{of(true, phases{"linears": 3, "unsplit": 1}), []string{"linears", "steps not split"}, 2000},
	} {
		f, drawn := drawnOf(t, c.runs)["time"]
		if !drawn {
			if c.parts != nil {
				t.Errorf("%v: drew nothing", c.parts)
			}
			continue
		}
		var parts []string
		b := &f.Charts[0].Bars[0]
		for _, p := range b.Parts {
			parts = append(parts, p.Name)
		}
		if !slices.Equal(parts, c.parts) || b.Value() != c.total {
			t.Errorf("parts %q of %g, want %q of %g", parts, b.Value(), c.parts, c.total)
		}
	}
	known := map[string]bool{}
	for _, ph := range papers.Phases() {
		known[ph.Key] = true
	}
	var stored []metrics.Summary
	err := readJSON(filepath.Join("testdata", "runs", "time"), "summary.json", &stored)
	for i := range stored {
		for key := range stored[i].PhaseS {
			if !known[key] || err != nil {
				t.Errorf("phase %q has no part of a bar (%v)", key, err)
			}
		}
	}
}

// Runs of which none served a request have no pictures, and an answer all the same.
func TestNothingToDraw(t *testing.T) {
	d := made(t, folder(t, map[string]string{"summary.json": `[{"system":"vllm","completed":0}]`}))
	if len(d.Figures) > 0 || len(d.Tables) == 0 {
		t.Errorf("%d figures and %d tables", len(d.Figures), len(d.Tables))
	}
	for _, text := range []string{`[]`, `[{"system":"vl`} {
		dir := folder(t, map[string]string{"summary.json": text})
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error is %v, want one that names the folder", text, err)
		}
	}
}

// A page shows the pictures that files have, and of many alike the first few.
func TestPageHasThePictures(t *testing.T) {
	d := made(t, filepath.Join("testdata", "runs", "seeds"))
	before := len(d.Figures)
	for range 6 {
		d.Figures = append(d.Figures, doc.Figure{Title: "many", Minor: true,
			Charts: []*doc.Chart{{Title: "one of many"}}})
	}
	var out strings.Builder
	if err := show.HTML(&out, d); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), `"title":"one of many"`); n != 4 {
		t.Errorf("%d of 6 are shown", n)
	}
	expectIn(t, out.String(), "The pictures of 2 more runs are files of their own.")
	for _, f := range d.Figures[:before] {
		if !strings.Contains(out.String(), f.Charts[0].Y) || reflect.DeepEqual(f, doc.Figure{}) {
			t.Errorf("%s is not shown", f.Name)
		}
	}
}
