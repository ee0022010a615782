package answers

import (
	"reflect"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// A document has warnings in one order for all media: what makes every figure misread comes before
// how far the cost model was extrapolated, which is a note.
func TestWarningsComeBySeverity(t *testing.T) {
	systems := []sim.Spec{{Name: "a", Engine: "new"}, {Name: "b", Engine: "old"},
		{Name: "a", Engine: "new"}}
	got := Warnings(append(engineWarnings(systems), []warn.Warning{
		{Kind: warn.Extrapolated, Text: "linears: asked for 32770 tokens, measured 1 to 4096", Of: "a"},
		{Kind: warn.UnstableQueue, Text: "unstable queue: waits grow", Of: "a"},
		{Kind: warn.Preemptions, Text: "preemptions: 721, 120 a request", Of: "b"},
		{Kind: warn.Preemptions, Text: "preemptions: 2, 1 a request", Of: "a"},
	}...), 2)
	want := []warn.Warning{
		{Kind: warn.Engines, Text: "different engines: new (a), old (b); a part of what the systems " +
			"differ by is the engines'; --set system.engine=NAME runs all under one"},
		{Kind: warn.Preemptions, Text: "preemptions: 721, 120 a request (and 1 more like it)",
			Of: "all of them"},
		{Kind: warn.UnstableQueue, Text: "unstable queue: waits grow", Of: "a"},
		{Kind: warn.Extrapolated, Text: "linears: asked for 32770 tokens, measured 1 to 4096", Of: "a"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
