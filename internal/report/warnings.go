package report

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// mostNames is how many results a warning names.
const mostNames = 4

// warn adds warnings of a number of results, whose systems may run under different engines.
func (p *page) warn(systems []sim.Spec, all []warn.Said, results int) {
	for _, g := range warn.Gather(append(EnginesOf(systems).Warnings(), all...)) {
		w := warning{Text: g.Text}
		switch n := len(g.Of); {
		case n == results && n > 1:
			w.Of = "all of them"
		case n > mostNames:
			w.Of = fmt.Sprintf("%s and %d others", strings.Join(g.Of[:mostNames-1], ", "), n-mostNames+1)
		default:
			w.Of = strings.Join(g.Of, ", ")
		}
		if g.Severity == warn.Note {
			p.Notes = append(p.Notes, w)
		} else {
			p.Warnings = append(p.Warnings, w)
		}
	}
}
