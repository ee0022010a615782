package answers

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// A document has warnings in one order for all media: what makes every figure misread comes before
// how far the cost model was extrapolated, which is a note.
func TestWarningsComeBySeverity(t *testing.T) {
	systems := []sim.Spec{{Name: "a", Engine: "new"}, {Name: "b", Engine: "old"},
		{Name: "a", Engine: "new"}}
	got := Warnings(append(engineWarnings(systems), []resultWarning{
		{Warning: warn.New(warn.Extrapolated, "linears: asked for 32770 tokens, measured 1 to 4096"),
			of: "a"},
		{Warning: warn.New(warn.UnstableQueue, "unstable queue: waits grow"), of: "a"},
		{Warning: warn.New(warn.Preemptions, "preemptions: 721, 120 a request"), of: "b"},
		{Warning: warn.New(warn.Preemptions, "preemptions: 2, 1 a request"), of: "a"},
	}...), 2)
	want := []doc.Warning{
		{Text: "different engines: new (a), old (b); a part of what the systems differ by is the " +
			"engines'; --set system.engine=NAME runs all under one", Serious: true},
		{Text: "preemptions: 721, 120 a request (and 1 more like it)", Of: "all of them", Serious: true},
		{Text: "unstable queue: waits grow", Of: "a", Serious: true},
		{Text: "linears: asked for 32770 tokens, measured 1 to 4096", Of: "a", Note: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
