package report

import (
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// The page has warnings in the order of the terminal: what makes every figure misread comes before
// how far the cost model was extrapolated, which is folded there as here.
func TestWarningsComeBySeverity(t *testing.T) {
	var p page
	systems := []sim.Spec{{Name: "a", Engine: "new"}, {Name: "b", Engine: "old"},
		{Name: "a", Engine: "new"}}
	p.warn(systems, []warn.Said{
		{Warning: warn.New(warn.Extrapolated, "linears: asked for 32770 tokens, measured 1 to 4096"),
			Of: "a"},
		{Warning: warn.New(warn.UnstableQueue, "unstable queue: waits grow"), Of: "a"},
		{Warning: warn.New(warn.Preemptions, "preemptions: 721, 120 a request"), Of: "b"},
		{Warning: warn.New(warn.Preemptions, "preemptions: 2, 1 a request"), Of: "a"},
	}, 2)
	want := []warning{
		{"different engines: new (a), old (b); a part of what the systems differ by is the engines'; " +
			"--set system.engine=NAME runs all under one", ""},
		{"preemptions: 721, 120 a request (and 1 more like it)", "all of them"},
		{"unstable queue: waits grow", "a"},
	}
	if len(p.Notes) != 1 || p.Notes[0].Text != "linears: asked for 32770 tokens, measured 1 to 4096" {
		t.Errorf("notes %+v", p.Notes)
	}
	for i, w := range want {
		if len(p.Warnings) != len(want) || p.Warnings[i] != w {
			t.Fatalf("%+v, want %+v", p.Warnings, want)
		}
	}
}
