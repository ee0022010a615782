package answers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// mostSentences is the maximum number of axis settings with a sentence each.
const mostSentences = 3

// sustained reports, for each axis setting, the largest load that each system serves within the
// service level. It returns nothing for runs without a level, or with a single arrival process.
func (r *Runs) sustained(axes []string, rows []runRow) (sentences []string) {
	setting := func(x *runRow) string { return settingsText(x.shown, axes) }
	for _, set := range distinct(rows, setting) {
		text := r.sentence(where(rows, func(x *runRow) bool { return setting(x) == set }))
		if text != "" {
			sentences = append(sentences, strings.TrimLeft(set+": "+text, ",: "))
		}
	}
	if len(sentences) > mostSentences {
		return nil
	}
	return sentences
}

// sentence reports the largest load of each system, such as "sparseserve serves 0.25 req/s within
// the SLO; vllm less than 0.05".
func (r *Runs) sentence(rows []runRow) string {
	if slices.ContainsFunc(rows, func(x runRow) bool {
		return x.load.clients > 0 || x.load.rate == 0
	}) {
		return ""
	}
	systems := distinct(rows, func(x *runRow) string { return x.system })
	for i, system := range systems {
		most := largest(where(rows, func(x *runRow) bool { return x.system == system }))
		if most == "" {
			return ""
		}
		if i == 0 {
			most = "serves " + most + " " + r.Unit + " within the SLO"
		}
		systems[i] += " " + most
	}
	return strings.Join(systems, "; ") + "."
}

// largest returns the largest load of a system within the service level, below the first load that
// misses it; "" if the runs were not judged.
func largest(rows []runRow) string {
	held := ""
	for i := range rows {
		r := &rows[i]
		met, judged := r.met()
		switch {
		case judged == 0:
			return ""
		case met < len(r.runs) && held == "":
			return "less than " + r.load.String()
		case met < len(r.runs):
			return held
		}
		held = r.load.String()
	}
	return "at least " + held
}

// mostNames is the maximum number of results that a warning names.
const mostNames = 4

// Warnings returns the warnings of a number of results, most serious first.
func Warnings(all []warn.Warning, results int) []warn.Warning {
	return named(all, func(of []string) string {
		switch n := len(of); {
		case results == 1: // they concern the whole answer
			return ""
		case n == results && n > 1:
			return "all of them"
		case n > mostNames:
			return fmt.Sprintf("%s and %d others", strings.Join(of[:mostNames-1], ", "), n-mostNames+1)
		}
		return strings.Join(of, ", ")
	})
}

// said returns the warnings of one result with its name.
func said(warnings []warn.Warning, of string) (all []warn.Warning) {
	for _, w := range warnings {
		w.Of = of
		all = append(all, w)
	}
	return all
}

// named groups warnings by kind and subject, most serious kind first. name describes the results of
// a group.
func named(all []warn.Warning, name func(of []string) string) (warnings []warn.Warning) {
	type group struct {
		kind    warn.Kind
		subject string
	}
	groupOf := func(w *warn.Warning) group { return group{w.Kind, w.Subject} }
	groups := distinct(all, groupOf)
	slices.SortStableFunc(groups, func(a, b group) int { return a.kind.Rank() - b.kind.Rank() })
	for _, g := range groups {
		own := where(all, func(w *warn.Warning) bool { return groupOf(w) == g })
		texts := distinct(own, func(w *warn.Warning) string { return w.Text })
		results := distinct(where(own, func(w *warn.Warning) bool { return w.Of != "" }),
			func(w *warn.Warning) string { return w.Of })
		one := own[0]
		one.Of = name(results)
		if more := len(texts) - 1; more > 0 {
			one.Text += fmt.Sprintf(" (and %d more like it)", more)
		}
		warnings = append(warnings, one)
	}
	return warnings
}
