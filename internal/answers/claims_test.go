package answers

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// someOutcomes are one of each kind, by class.
func someOutcomes() []papers.Outcome {
	v := func(id, kind, bound string, index int, value, ours, low, high, deviation float64,
		class papers.Class, verdict papers.Verdict, note string) papers.Outcome {
		return papers.Outcome{ID: id, Index: index, Paper: "sparseserve", Where: "Fig. 1",
			Text: "something of " + id, Kind: kind,
			Bound: bound, Value: value, Ours: &ours, Low: &low, High: &high, Deviation: &deviation,
			Class: class, Verdict: verdict, Note: note}
	}
	const pass, fail, undecided = papers.Pass, papers.Fail, papers.Undecided
	const own, anchor, built = papers.Independent, papers.Anchor, papers.Construction
	return []papers.Outcome{
		v("ss-ratio", "ratio", "", 0, 2, 2.1, 2, 2.2, 0.05, own, pass, "not shown"),
		v("ss-ratio", "ratio", "", 1, 2, 200, 180, 220, 99, own, fail, "it is far too large"),
		v("ss-share", "share", "", 0, 0.7, 0.5, 0.4, 0.6, -0.286, own, undecided, "it may be too small"),
		{ID: "psa-x", Paper: "psa", Where: "Fig. 6", Text: "something else", Kind: "ratio", Value: 1.5,
			Class: own, Note: "not yet measured: needs PSA selection"},
		v("ss-points", "points", "", 0, 10, 11, 10, 12, 0.1, anchor, pass, ""),
		v("ss-below", "bandwidth", "below", 0, 4, 2.4, 2.4, 2.4, -0.4, built, pass, ""),
		v("ss-above", "bandwidth", "above", 0, 20, 18, 18, 18, -0.1, built, fail, ""),
	}
}

// Every number of every claim has a row in the table of its class, and a class a line.
func TestNumbersOfClaims(t *testing.T) {
	d := Claims(someOutcomes())
	text := printed(t, d)
	expectIn(t, text, "claim of what where paper ours 95 % interval deviation verdict",
		"Independent evidence",
		"ss-ratio something of ss-ratio Fig. 1 2.00x 2.10x 2.00x to 2.20x +5 % pass",
		"ss-ratio [2] the same, number 2 Fig. 1 2.00x 200x 180x to 220x +9900 % FAIL",
		"ss-share something of ss-share Fig. 1 70.0 % 50.0 % 40.0 % to 60.0 % -29 % undecided",
		"psa-x something else psa, Fig. 6 1.50x - - - needs PSA selection",
		"Anchors", "Fig. 1 10.00 points 11.00 points 10.00 points to 12.00 points +10 % pass",
		"True by construction", "Fig. 1 < 4.0 GB/s 2.4 GB/s - - pass",
		"Fig. 1 > 20.0 GB/s 18.0 GB/s - - FAIL",
		aboutVerdicts, "Where they do not pass", "ss-ratio it is far too large",
		"ss-share it may be too small",
		"independent evidence: 1 of 4 pass, 1 undecided, 1 fail, 1 not measured anchors: 1 of 1 pass, 0 "+
			"undecided, 0 fail true by construction: 1 of 2 pass, 0 undecided, 1 fail")
	if strings.Contains(text, "not shown") {
		t.Error("a claim that passes has its note")
	}
	for i := range d.Tables {
		if d.Tables[i].Folded || len(d.Tables[i].Columns) > 8 {
			t.Errorf("table %q is %+v", d.Tables[i].Title, d.Tables[i].Columns)
		}
	}
}

// A null model has what passes by paper, and its numbers on demand.
func TestNumbersOfNullClaims(t *testing.T) {
	d := NullClaims(someOutcomes())
	expectIn(t, printed(t, d), "independent evidence anchors true by construction",
		"sparseserve 1 of 3 1 of 1 1 of 2", "psa 0 of 1 - -",
		"claim of what where paper null 95 % interval", "2.00x 2.10x 2.00x to 2.20x +5 % pass",
		"anchors: 1 of 1 pass, 0 undecided, 0 fail", aboutVerdicts)
	if d.Tables[0].Folded || !d.Tables[1].Folded || len(d.Tables) != 4 {
		t.Errorf("tables are %+v", d.Tables)
	}
}

func TestNumbersOfSwappedClaims(t *testing.T) {
	other := someOutcomes()
	*other[0].Ours, other[0].Verdict = 9, papers.Fail
	expectIn(t, printed(t, SwappedClaims(someOutcomes(), other)), "sparseserve ours 1 of 3 1 of 1",
		"sparseserve exchanged 0 of 3 1 of 1", "psa ours 0 of 1",
		"ss-ratio 2.00x 2.10x pass 9.00x FAIL", "ss-below < 4.0 GB/s 2.4 GB/s pass",
		"Exchanged: LWM-7B has Llama3-8B's output_scale, Llama3-8B that of LWM-7B. Three seeds of 100 "+
			"requests, 4 groups of heads, goodput to a quarter; without intervals.")
}

// A change is compared on the numbers that it was run for, and others have no row.
func TestNumbersOfSearchedClaims(t *testing.T) {
	changed, nothing := someOutcomes(), someOutcomes()
	*changed[0].Ours, changed[0].Verdict = 9, papers.Fail
	for i := range changed {
		if nothing[i].Ours, nothing[i].Verdict = nil, ""; i > 1 {
			changed[i].Ours, changed[i].Verdict = nil, ""
		}
	}
	d := SearchedClaims([]string{"a=1", "b=2"}, [][]papers.Outcome{someOutcomes(), changed, nothing})
	expectIn(t, printed(t, d), "claim paper ours a=1 b=2", "ss-ratio 2.00x 2.10x pass 9.00x FAIL -",
		"ss-ratio [2] 2.00x 200x FAIL 200x FAIL -", "in the band; ours of the same 0 of 2; 1 0 of 0; 0")
	if n := len(d.Tables[0].Rows); n != 3 {
		t.Errorf("%d rows, want two numbers and their count", n)
	}
}

// A number moves where it changes by 5 % or its outcome does.
func TestNumbersOfSensitiveClaims(t *testing.T) {
	var models [][]papers.Outcome
	for range 5 {
		models = append(models, someOutcomes())
	}
	*models[1][0].Ours, models[1][0].Verdict = 1.2, papers.Fail
	*models[2][4].Ours = 14
	*models[4][2].Ours, models[4][2].Verdict = 0.65, papers.Pass
	*models[3][5].Ours = 2.3 // within 5 %
	d := SensitiveClaims([]papers.Tuned{{Name: "output_scale", Values: map[string]float64{
		"lwm-7b": 2, "llama3-8b": 8}, Reason: "none is given"}, {Name: "host.step", Value: 2.5,
		Unit: "ms", Reason: "an iteration takes 30 ms"}}, models)
	expectIn(t, printed(t, d), "parameter value numbers it moves why this value",
		"output_scale 8 for llama3-8b, 2 for lwm-7b 2 none is given",
		"host.step 2.5 ms 1 an iteration takes 30 ms")
}
