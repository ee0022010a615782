package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// said is a warning and what it is about.
type said struct{ text, of string }

// mostNames is how many results a warning names.
const mostNames = 4

// warn adds warnings, those of one kind together.
func (p *page) warn(all []said, results int) {
	type group struct {
		kind  string
		texts []string
		of    []string
	}
	var groups []*group
	for _, s := range all {
		kind := KindOf(s.text)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.kind == kind })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{kind: kind})
		}
		if g := groups[i]; !slices.Contains(g.texts, s.text) {
			g.texts = append(g.texts, s.text)
		}
		if g := groups[i]; s.of != "" && !slices.Contains(g.of, s.of) {
			g.of = append(g.of, s.of)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return Severity(b.kind) - Severity(a.kind) })
	for _, g := range groups {
		w := warning{Text: g.texts[0]}
		if n := len(g.texts); n > 1 {
			w.Text += fmt.Sprintf(" (and %d more like it)", n-1)
		}
		switch n := len(g.of); {
		case n == results && n > 1:
			w.Of = "all of them"
		case n > mostNames:
			w.Of = fmt.Sprintf("%s and %d others", strings.Join(g.of[:mostNames-1], ", "), n-mostNames+1)
		default:
			w.Of = strings.Join(g.of, ", ")
		}
		p.Warnings = append(p.Warnings, w)
	}
}

// serious are parts of warnings without which figures are misread, the gravest first.
var serious = []string{"no request finished", "ended early", "requests rejected", "preemptions",
	sim.UnstableQueue, sim.WaitsGrow, sim.NearLimit,
	"truncated",
	"began anew", "rows left out", "trace ended", "has no bound", "requests finished"}

// Severity orders warnings: those about requests and the queue come before those about how far the
// cost model was extrapolated, which have 0.
func Severity(text string) int {
	text = strings.Join(strings.Fields(text), " ") // a kind has no numbers
	for i, part := range serious {
		if strings.Contains(text, part) {
			return len(serious) - i
		}
	}
	return 0
}

// KindOf is a warning without what differs from run to run: its numbers, and all after the colon.
func KindOf(text string) string {
	kind, _, _ := strings.Cut(text, ":")
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, kind)
}

// notes are parts of warnings that nearly every run has: how far the cost model was extrapolated,
// and how many heads were sampled.
var notes = []string{": asked for ", "heads sampled: "}

// IsNote says whether a warning says only that.
func IsNote(text string) bool {
	return slices.ContainsFunc(notes, func(part string) bool { return strings.Contains(text, part) })
}
