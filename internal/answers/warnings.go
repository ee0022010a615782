package answers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// mostNames is the maximum number of results that a warning names.
const mostNames = 4

// Warnings returns the warnings of a number of results, most serious first.
func Warnings(all []resultWarning, results int) []doc.Warning {
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

// resultWarning is a warning with the name of its result; "" for the whole answer.
type resultWarning struct {
	warn.Warning
	of string
}

// said returns the warnings of one result.
func said(warnings []warn.Warning, of string) (all []resultWarning) {
	for _, w := range warnings {
		all = append(all, resultWarning{w, of})
	}
	return all
}

// named groups warnings by kind and subject, most serious kind first. name describes the results of
// a group.
func named(all []resultWarning, name func(of []string) string) (warnings []doc.Warning) {
	type group struct {
		kind    warn.Kind
		subject string
	}
	groupOf := func(w *resultWarning) group { return group{w.Kind, w.Subject} }
	groups := distinct(all, groupOf)
	slices.SortStableFunc(groups, func(a, b group) int { return a.kind.Rank() - b.kind.Rank() })
	for _, g := range groups {
		own := where(all, func(w *resultWarning) bool { return groupOf(w) == g })
		texts := distinct(own, func(w *resultWarning) string { return w.Text })
		results := distinct(where(own, func(w *resultWarning) bool { return w.of != "" }),
			func(w *resultWarning) string { return w.of })
		one := doc.Warning{Text: texts[0], Of: name(results),
			Serious: own[0].Severity() == warn.Serious, Note: own[0].Severity() == warn.Note}
		if more := len(texts) - 1; more > 0 {
			one.Text += fmt.Sprintf(" (and %d more like it)", more)
		}
		warnings = append(warnings, one)
	}
	return warnings
}
