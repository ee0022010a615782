package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// Said is a warning and the name of the result that it is about.
type Said struct{ Text, Of string }

// Warning are the warnings of one kind, and the names of the results that they are about.
type Warning struct {
	Text string
	Of   []string
	Note bool // of what nearly every run has: shown on demand
}

// Gather lists what results must be read with: first that their systems run under different
// engines, then their warnings, the serious first. Those of one kind are one.
func Gather(systems []sim.Spec, all []Said) []Warning {
	type group struct {
		kind  string
		texts []string // distinct, in order
		of    []string
	}
	var groups []*group
	for _, s := range all {
		kind := kindOf(s.Text)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.kind == kind })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{kind: kind})
		}
		if g := groups[i]; !slices.Contains(g.texts, s.Text) {
			g.texts = append(g.texts, s.Text)
		}
		if g := groups[i]; s.Of != "" && !slices.Contains(g.of, s.Of) {
			g.of = append(g.of, s.Of)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return severity(b.kind) - severity(a.kind) })
	var list []Warning
	if text := EnginesOf(systems).warning(); text != "" {
		list = append(list, Warning{Text: text})
	}
	for _, g := range groups {
		w := Warning{g.texts[0], g.of, isNote(g.texts[0])}
		if n := len(g.texts); n > 1 {
			w.Text += fmt.Sprintf(" (and %d more like it)", n-1)
		}
		list = append(list, w)
	}
	return list
}

// NotesTitle says how many notes there are, and of what.
func NotesTitle(n int) string {
	if n == 1 {
		return "1 note on extrapolation and sampling"
	}
	return fmt.Sprintf("%d notes on extrapolation and sampling", n)
}

// mostNames is how many results a warning names.
const mostNames = 4

// warn adds warnings of so many results.
func (p *page) warn(systems []sim.Spec, all []Said, results int) {
	for _, g := range Gather(systems, all) {
		w := warning{Text: g.Text}
		switch n := len(g.Of); {
		case n == results && n > 1:
			w.Of = "all of them"
		case n > mostNames:
			w.Of = fmt.Sprintf("%s and %d others", strings.Join(g.Of[:mostNames-1], ", "), n-mostNames+1)
		default:
			w.Of = strings.Join(g.Of, ", ")
		}
		if g.Note {
			p.Notes = append(p.Notes, w)
		} else {
			p.Warnings = append(p.Warnings, w)
		}
	}
}

// serious are parts of warnings without which figures are misread, the gravest first.
var serious = []string{"no request finished", "ended early", "requests rejected", sim.NoReplicaUp,
	"preemptions",
	sim.UnstableQueue, sim.WaitsGrow, sim.NearLimit,
	"truncated",
	"began anew", "trace is damaged", "rows left out", "trace ended", "has no bound",
	"requests finished"}

// severity orders warnings: those about requests and the queue come before those about how far the
// cost model was extrapolated, which have 0.
func severity(text string) int {
	text = strings.Join(strings.Fields(text), " ") // a kind has no numbers
	for i, part := range serious {
		if strings.Contains(text, part) {
			return len(serious) - i
		}
	}
	return 0
}

// kindOf is a warning without what differs from run to run: its numbers, and all after the colon.
func kindOf(text string) string {
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

// isNote says whether a warning says only that.
func isNote(text string) bool {
	return slices.ContainsFunc(notes, func(part string) bool { return strings.Contains(text, part) })
}
