package answers

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// sameFromFolder checks that the file of a result makes the same document as the result itself, and
// returns all that the document's text has, words separated by one space.
func sameFromFolder(t *testing.T, file string, result any, of func(name string) *doc.Doc) string {
	t.Helper()
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{file: string(text)})
	d := of(filepath.Base(dir))
	read, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, d) {
		t.Errorf("the folder makes\n%+v\nwant\n%+v", read, d)
	}
	made(t, dir)
	var out bytes.Buffer
	if err := show.Text(&out, d, show.Options{Whole: true}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", " ")), " ")
}

// goodputs are two candidates, whose figures all differ.
func goodputs() []capacity.Goodput {
	bound := capacity.Bounded{Bound: config.Bound{Name: "tbt", Stat: "p99", Limit: 0.5}, ValueS: 0.375}
	return []capacity.Goodput{
		{Name: "a", Model: "m", GPU: "g", Asked: "m on 1x g", Seeds: []uint64{1, 2, 3}, Requests: 90,
			Goodput: 1.25, Unit: "sessions/s", Low: new(1.125), High: new(1.5), LimitedBy: "tbt",
			SeedGoodputs: []float64{1.21, 1.22, 1.23}, SLO: "level", Bounds: []capacity.Bounded{bound},
			RejectedShare: 0.02, MissedShare: 0.03, ThroughputTokS: 321, Runs: 17,
			Warnings: []warn.Warning{warn.New(warn.Interval, "outside")}},
		{Name: "b", Model: "m", GPU: "g", Asked: "m on 1x g", Seeds: []uint64{1}, Goodput: 2,
			Unit: "sessions/s", SLO: "another", Warnings: []warn.Warning{
				warn.New(warn.UnstableQueue, "unstable")}},
	}
}

// The document of a plan has every number and caveat, and the unit that was counted.
func TestGoodputDocument(t *testing.T) {
	found := goodputs()
	of := func(name string) *doc.Doc { return Goodputs(name, found) }
	text := sameFromFolder(t, "goodput.json", found, of)
	expectIn(t, text, "m on 1x g; seeds 1, 2, 3 at each rate.",
		"b serves 2.00 sessions/s within the SLO; a 1.25.",
		"a 1.25 1.12 to 1.50 tbt P99 TBT 0.375 of 0.500 s 3.00 2.00 321", "b 2.00 -",
		"SLO of a: level", "SLO of b: another",
		"systems have different SLOs", "outside a", "unstable b", "the largest rate below every failure",
		"Student's t", "goodput (sessions/s)")
	if strings.Contains(text, "req/s") {
		t.Errorf("sessions are no requests:\n%s", text)
	}
	d := of("x")
	if d.Warnings[0].Text != "unstable" {
		t.Errorf("warnings are %+v", d.Warnings)
	}
	bar := d.Figures[0].Charts[0].Bars[0].Parts[0]
	if bar.Value != 1.25 || *bar.Low != 1.125 || *bar.High != 1.5 {
		t.Errorf("the bar of a is %+v", bar)
	}
	found[1].Goodput, found[0].Goodput = 0, 0
	const none = "a meets the SLO at no rate that was tried; b meets it at no rate that was tried."
	if got := of("x").Answers[0]; got != none {
		t.Errorf("the answer is %q", got)
	}
}

// bought is a purchase of the folder testdata/purchase.
func bought(t *testing.T) *capacity.Purchase {
	t.Helper()
	var a capacity.Purchase
	if err := readJSON("testdata/purchase", "purchase.json", &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// The document of a purchase has the question, what to buy, what that rests on, and every
// candidate. That nothing was measured is said as well.
func TestPurchaseDocument(t *testing.T) {
	a := bought(t)
	a.Choice.Preempted, a.Choice.RecomputedShare = 7, 0.011
	a.Question.Spare, a.Lacks, a.Steps = 1, "it lacks", []int{1024, 8192}
	of := func(name string) *doc.Doc { return Purchase(name, a) }
	text := sameFromFolder(t, "purchase.json", a, of)
	expectIn(t, text, "model: llama3.1-8b, context of 131072 tokens", "prompts: 2000 tokens",
		"load: 20 requests/s, poisson", "margin: 20 % more load, 1 spare replicas",
		"Buy 2 replicas of vllm-0.15 gpu=h100-80gb tensor_parallel=1: 2 GPUs of h100-80gb, $7.70 an",
		`price $3.85 a GPU and hour: "mid" of built-in prices; nebius, HGX H100, 2026-09-25, https`,
		"price range $5.20 an hour at the lowest price there (openrelay), $24.58 at the highest (azure)",
		"tokens the whole cost is $0.053 a million input tokens, $1.07 output, $0.051 of both",
		"margin holds 20 % more load with 1 replica down: P99 TBT <= 0.1275 s: 71 % used",
		"5.4 % and 0.0192 s error of such predictions, measured",
		"15 % error is assumed, because no such run was measured",
		"cheapest without a margin 4 replicas of vllm-0.15 gpu=a100-80gb tensor_parallel=1, $7.16 an",
		"headroom 50 %: up to 30.0 requests/s, then it misses TBT; at 31.5, P99 TBT <= 0.1275 s has",
		"limits P99 TBT <= 0.15 s: 31 % used; P99 TTFT <= 2 s: 8 % used",
		"steps of 8192 tokens at most; tried: 1024 8192",
		"preempted 7 times under the load; 1.1 % of the steps' time computes lost KV again",
		"short of arithmetic (a tenth more takes 40.1 % off the nearest limit)",
		"accuracy full attention: the model's own", "error vLLM 0.15 on an H100: mean TTFT -5.4 to",
		"weakest P99 of TTFT", "a replica: vllm serve meta-llama/Llama-3.1-8B", "it lacks",
		"1 of at least 3 seeds", "seed 1",
		"vllm-0.15 gpu=a100-80gb tensor_parallel=2 3 x 2 a100-80gb $10.74 - - P99 TBT 54, P99 TTFT "+
			"11 dearer, so its headroom is not searched")
	for i := range a.Candidates {
		c := &a.Candidates[i]
		expectIn(t, text, strings.Join([]string{c.Name, c.Outcome, capacity.USD(c.USDPerHour),
			c.Price.Provider + ",", c.Price.Date, capacity.USD(c.Price.USDPerHour),
			capacity.USD(c.USDPerMInput), capacity.USD(c.USDPerMOutput), capacity.USD(c.USDPerMTotal)},
			" "), strings.Join([]string{c.Name, digits(c.ThroughputTokS), strconv.Itoa(c.Runs)}, " "))
	}
	a.Proof.Measured, a.Serve, a.NoServe = "", "", "engine x is not vLLM"
	a.Bare.USDPerHour = a.Choice.USDPerHour + 1
	a.Candidates[5].Outcome, a.Candidates[5].Reason = capacity.Misses, "misses tbt"
	expectIn(t, sameFromFolder(t, "purchase.json", a, of),
		"error vLLM 0.15 on an H100: not measured (",
		"a replica: no command: engine x is not vLLM", "misses TBT",
		"cheapest nothing is cheaper without a margin")
	a.Candidates[4].Outcome, a.Candidates[4].Replicas = capacity.Dearer, 0
	expectIn(t, sameFromFolder(t, "purchase.json", a, of), "tensor_parallel=2 not searched - - - P99")
	a.Choice, a.Nearest = nil, &a.Candidates[5]
	a.Nearest.Limits[0].Of, a.Nearest.Limits[1].Of = 1.76, 0.5
	expectIn(t, sameFromFolder(t, "purchase.json", a, of),
		"No candidate meets the service level with 20 % more load, with any number of replicas. The "+
			"nearest is", "misses P99 TBT <= 0.15 s: 1.76 times the limit",
		"holds P99 TTFT <= 2 s: 0.5 times the limit", "would do: P99 TBT")
}

// A purchase is drawn as its costs, the nearest limits, and each limit against the cost.
func TestPurchaseCharts(t *testing.T) {
	a := bought(t)
	figures := Purchase("x", a).Figures
	cost, near := figures[0].Charts[0], figures[0].Charts[1]
	if b := cost.Bars[0]; b.Parts[0].Value != 7.7 || b.Note != "$7.70, 2 GPUs, +50 % load" {
		t.Errorf("the cost is %+v", b)
	}
	if b := near.Bars[0]; b.Parts[0].Value != 100*a.Choice.Limits[0].Of || near.Levels[0] != 100 {
		t.Errorf("the nearest limit is %+v, of %v", b, near.Levels)
	}
	for i, c := range figures[1].Charts {
		p, share := c.Lines[0].Points[0], a.Choice.Limits[1-i] // TBT is nearer than TTFT
		if !c.Lines[0].Dots || c.Levels[0] != a.Limits[i].AskedS ||
			c.Title != share.Limit || p.X != 7.7 || p.Y != share.Of*c.Levels[0] {
			t.Errorf("chart %d is %+v, want %+v of the limit", i, c, share)
		}
	}
	for range 20 {
		more := a.Candidates[1]
		more.Name, more.Outcome, more.Family = more.Name+"x", capacity.Dearer, ""
		a.Candidates = append(a.Candidates, more)
		more.Family = more.Name
		a.Candidates = append(a.Candidates, more)
	}
	d := Purchase("x", a)
	if n := len(d.Tables[0].Rows); n != 7 || !slices.Contains(d.Tables[0].Legend,
		"and 39 candidates that are dearer, do not serve, or differ by step size alone "+
			"(purchase.json)") {
		t.Errorf("%d rows, %q", n, d.Tables[0].Legend)
	}
}

// varied is a what-if of one knob that matters and one that does not.
func varied() *whatif.Result {
	value := func(v float64) whatif.Value { return whatif.Value{Value: v, LimitedBy: "tbt"} }
	cell := 1.5
	c := &whatif.Case{Name: "a", Model: "m", GPU: "g", Rate: 3, Seeds: []uint64{1, 2}, Requests: 90,
		SLO: "level", Base: value(2), Knobs: []*whatif.KnobResult{
			{Knob: "idle", Keys: []string{"card.hbm"}, Base: "1", Points: []whatif.Change{
				{Setting: "7", Value: value(2)}, {Setting: "8", Value: value(2)}}},
			{Knob: "link", Keys: []string{"card.link_h2d"}, Factor: true, Base: "1",
				Points: []whatif.Change{{Setting: "0.5", Value: value(2.5), Change: 0.25},
					{Setting: "2", Value: value(1.6), Change: -0.2, Low: new(-0.3), High: new(-0.1)}}},
		}, Heat: &whatif.HeatMap{A: "link", FactorA: true, B: "hbm", ValuesA: []string{"1", "4"},
			ValuesB: []string{"1"}, Cells: [][]*float64{{&cell, nil}}},
		Thresholds: []*whatif.Crossing{{Name: "dram", Question: "how much", Knob: "dram",
			Text: "4 fail", Tried: []whatif.Answer{{Setting: "4", Verdict: "fails", Value: 0.7,
				Against: 0.9}}}}}
	c.Base.Warnings = []warn.Warning{warn.New(warn.FewRequests, "few")}
	return &whatif.Result{Metric: "ttft_mean", Label: "mean TTFT (s)", Cases: []*whatif.Case{c},
		Notes: []string{"x is left out:\nit fails"}}
}

// The document of a what-if has every number and caveat. Knobs without effect are one line.
func TestWhatIfDocument(t *testing.T) {
	w := varied()
	of := func(name string) *doc.Doc { return WhatIf(name, w) }
	text := sameFromFolder(t, "whatif.json", w, of)
	expectIn(t, text, "mean TTFT (s), lower is better; seeds 1, 2, the same",
		"x is left out:; it fails", "SLO: level",
		"a: m on g, 3 req/s, 90 requests; mean TTFT (s): 2.00", "a: mean TTFT (s) is 2.00, and link "+
			"changes it the most: 2.50 with x 0.5 (+25.0 %), 1.60 with x 2 (-20.0 %).",
		"a: without effect: idle (7, 8).", "link x 1 x 0.5 2.50 +25.0 - tbt",
		"link x 1 x 2 1.60 -20.0 -30.0 to -10.0 tbt", "link sets card.link_h2d",
		"link across and hbm down", "hbm 1 4", "1 1.50 -", "how much: 4 fail", "few")
	d := of("x")
	drawn := d.Figures[0].Charts[0]
	const smaller = "smaller than configured"
	if b := drawn.Bars; len(b) != 2 || b[0].Value() != 25 || b[0].Parts[0].Name != smaller ||
		b[1].Value() != -20 || b[1].Parts[0].Name == smaller || *b[1].Low != -30 ||
		*b[1].High != -10 || b[1].Note != "1.60" {
		t.Errorf("bars are %+v", b)
	}
	// The interval of a share ends at 0 and 100 %, that of another metric at 0 alone.
	for metric, want := range map[string]float64{"hits": 4900, "ttft_mean": 9000} {
		w.Metric, w.Cases[0].Knobs[1].Points[1].Low, w.Cases[0].Knobs[1].Points[1].High = metric,
			new(-1.5), new(90.0)
		if b := of("x").Figures[0].Charts[0].Bars[1]; *b.Low != -100 || *b.High != want {
			t.Errorf("%s: interval %g to %g, want -100 to %g", metric, *b.Low, *b.High, want)
		}
	}
	expectIn(t, d.Figures[0].Caption, "a: without effect: idle (7, 8).", "Whiskers")
	if h := d.Figures[1].Charts[0].Heat; len(h.Cells) != 1 || h.Cells[0].Value != 1.5 ||
		h.Cells[0].Change != -25 || h.A != "link (factor)" {
		t.Errorf("the heat map is %+v", h)
	}
	w.Cases[0].Knobs = w.Cases[0].Knobs[:1]
	if d := of("x"); len(d.Figures) != 1 || d.Figures[0].Name != "heat" {
		t.Errorf("knobs without effect are drawn: %+v", d.Figures)
	}
}

// A file whose parts are missing is an error that says so.
func TestDamagedWhatIf(t *testing.T) {
	for _, text := range []string{`{"cases": [null]}`, `{"cases": [{"knobs": [null]}]}`,
		`{"cases": [{"heat": {"values_a": ["1"], "values_b": ["1"], "cells": [[1, 2]]}}]}`} {
		_, err := Read(folder(t, map[string]string{"whatif.json": text}))
		if err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
