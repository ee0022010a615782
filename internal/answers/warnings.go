package answers

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// mostNames is the maximum number of results that a warning names.
const mostNames = 4

// Warnings returns the warnings of a number of results, most serious first.
func Warnings(all []warn.Said, results int) []doc.Warning {
	return named(all, func(of []string) string {
		switch n := len(of); {
		case results == 1: // they are of the whole answer
			return ""
		case n == results && n > 1:
			return "all of them"
		case n > mostNames:
			return fmt.Sprintf("%s and %d others", strings.Join(of[:mostNames-1], ", "), n-mostNames+1)
		}
		return strings.Join(of, ", ")
	})
}

// named returns warnings whose results are described by name.
func named(all []warn.Said, name func(of []string) string) (warnings []doc.Warning) {
	for _, g := range warn.Gather(all) {
		warnings = append(warnings, doc.Warning{Text: g.Text, Of: name(g.Of),
			Serious: g.Severity == warn.Serious, Note: g.Severity == warn.Note})
	}
	return warnings
}
