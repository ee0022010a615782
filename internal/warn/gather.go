package warn

import (
	"fmt"
	"slices"
)

// Said is a warning with the name of its result.
type Said struct {
	Warning
	Of string
}

// Group holds the warnings of one kind and subject, with the names of their results.
type Group struct {
	Kind     Kind
	Severity Severity
	Text     string // of the first, and how many others there are
	Of       []string
}

// Gather groups warnings by kind and subject, most serious kind first.
func Gather(all []Said) []Group {
	type key struct {
		kind    Kind
		subject string
	}
	var groups []Group
	var keys []key
	texts := map[key][]string{} // distinct
	for _, s := range all {
		k := key{s.Kind, s.Subject}
		i := slices.Index(keys, k)
		if i < 0 {
			i = len(keys)
			keys = append(keys, k)
			groups = append(groups, Group{Kind: s.Kind, Severity: s.Severity(), Text: s.Text})
		}
		if !slices.Contains(texts[k], s.Text) {
			texts[k] = append(texts[k], s.Text)
		}
		if s.Of != "" && !slices.Contains(groups[i].Of, s.Of) {
			groups[i].Of = append(groups[i].Of, s.Of)
		}
	}
	for i, k := range keys {
		if more := len(texts[k]) - 1; more > 0 {
			groups[i].Text += fmt.Sprintf(" (and %d more like it)", more)
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return rank(a.Kind) - rank(b.Kind) })
	return groups
}

// rank orders kinds: the serious ones by gravity, then all others.
func rank(k Kind) int {
	if i := slices.Index(serious, k); i >= 0 {
		return i
	}
	return len(serious)
}

// NotesTitle returns the number of notes as a title.
func NotesTitle(n int) string {
	if n == 1 {
		return "1 note on extrapolation and sampling"
	}
	return fmt.Sprintf("%d notes on extrapolation and sampling", n)
}
