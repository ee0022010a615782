package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/report"
	"github.com/sparseserve/sparseserve/sim"
)

// printWarnings prints what the results must be read with: first what is true of the comparison,
// then warnings of runs, the serious first. Warnings of one kind share a line that names their
// runs. Notes are only counted where they can be read elsewhere, as elsewhere says; empty prints
// them.
func printWarnings(w io.Writer, first string, sums []sim.Summary, elsewhere string) {
	type group struct {
		kind  string
		texts []string // distinct, in order
		runs  []string
		in    []sim.Summary
	}
	var groups []*group
	for _, s := range sums {
		for _, text := range s.Warnings {
			kind := report.KindOf(text)
			i := slices.IndexFunc(groups, func(g *group) bool { return g.kind == kind })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{kind: kind})
			}
			g := groups[i]
			if !slices.Contains(g.texts, text) {
				g.texts = append(g.texts, text)
			}
			if !slices.Contains(g.runs, s.Name) {
				g.runs, g.in = append(g.runs, s.Name), append(g.in, s)
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return report.Severity(b.kind) - report.Severity(a.kind)
	})
	all := len(groups)
	if elsewhere != "" {
		groups = slices.DeleteFunc(groups, func(g *group) bool { return report.IsNote(g.texts[0]) })
	}
	folded := all - len(groups)
	if first != "" || len(groups) > 0 {
		fmt.Fprintln(w, "\nWarnings:")
	}
	if first != "" {
		fmt.Fprintln(w, "  "+first)
	}
	for _, g := range groups {
		text := g.texts[0]
		if len(g.texts) > 1 {
			text += fmt.Sprintf(" (and %d more like it)", len(g.texts)-1)
		}
		fmt.Fprintf(w, "  %s\n    %s\n", oneLine(text), whichRuns(g.in, sums))
	}
	if folded > 0 {
		fmt.Fprintf(w, "\n%s on extrapolation and sampling: %s\n", count(folded, "note"), elsewhere)
	}
}

// whichRuns names runs by system and rate.
func whichRuns(in, all []sim.Summary) string {
	if len(in) == len(all) {
		return "all runs"
	}
	systems, rates := systemRates(in)
	_, everyRate := systemRates(all)
	for i, s := range systems {
		systems[i] = s + " at " + strings.Join(rates[s], ", ")
		if n := len(rates[s]); n > 1 && n == len(everyRate[s]) {
			systems[i] = s + " at every rate"
		}
	}
	return strings.Join(systems, "; ")
}

// systemRates lists systems, and the rates that each has runs at, in order.
func systemRates(sums []sim.Summary) (systems []string, rates map[string][]string) {
	rates = map[string][]string{}
	for _, s := range sums {
		if rates[s.System] == nil {
			systems = append(systems, s.System)
		}
		if rate := loadOf(&s).String(); !slices.Contains(rates[s.System], rate) {
			rates[s.System] = append(rates[s.System], rate)
		}
	}
	return systems, rates
}
