package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/report"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// printWarnings prints what the results of systems must be read with, and of which of several runs
// it is true. Notes are only counted where they can be read elsewhere, as elsewhere says; empty
// prints them.
func printWarnings(w io.Writer, systems []sim.Spec, sums []sim.Summary, elsewhere string) {
	all := report.EnginesOf(systems).Warnings()
	for i := range sums {
		for _, w := range sums[i].Warnings {
			all = append(all, warn.Said{Warning: w, Of: sums[i].Name})
		}
	}
	title, notes := "\nWarnings:\n", 0
	for _, warning := range warn.Gather(all) {
		if warning.Severity == warn.Note && elsewhere != "" {
			notes++
			continue
		}
		fmt.Fprintf(w, "%s  %s\n", title, oneLine(warning.Text))
		title = ""
		if len(warning.Of) > 0 && len(sums) > 1 {
			fmt.Fprintln(w, "   ", whichRuns(named(sums, warning.Of), sums))
		}
	}
	if notes > 0 {
		fmt.Fprintf(w, "\n%s: %s\n", warn.NotesTitle(notes), elsewhere)
	}
}

// named are the runs of some names, each name once.
func named(sums []sim.Summary, names []string) (in []sim.Summary) {
	for _, name := range names {
		in = append(in, sums[slices.IndexFunc(sums, func(s sim.Summary) bool { return s.Name == name })])
	}
	return in
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
