package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// printClaims prints every number of every claim, class by class, and counts them.
func printClaims(w io.Writer, model string, outcomes []papers.Outcome) {
	t := newTable(w)
	t.AppendHeader(table.Row{"claim", "", "paper", model, "95 % interval", "deviation", "", "class"})
	for i := range outcomes {
		v := &outcomes[i]
		if i > 0 && v.Class != outcomes[i-1].Class {
			t.AppendSeparator()
		}
		t.AppendRow(table.Row{claimName(v), v.Where, claimed(v), ours(v), interval(v), deviation(v),
			outcome(v), v.Class})
	}
	t.SetColumnConfigs(rightAligned(3, 6))
	t.Render()
	for _, line := range tallies(outcomes) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w, aboutVerdicts)
}

// printWhy prints the notes of claims that do not pass.
func printWhy(w io.Writer, outcomes []papers.Outcome) {
	if lines := failures(outcomes); len(lines) > 0 {
		fmt.Fprintln(w, "\nWhere they do not pass:")
		for _, line := range lines {
			fmt.Fprintln(w, "  "+text.WrapSoft(line, 110))
		}
	}
}

const aboutVerdicts = "Pass: the whole 95 % interval is within 20 % of the paper's number, or on " +
	"the right side of its bound. Fail: none of it is. Undecided: a part of it is."

// classNames are the classes as they are printed.
var classNames = map[papers.Class]string{papers.Independent: "independent evidence",
	papers.Anchor: "anchors", papers.Construction: "true by construction",
	papers.ChosenAfter: "parameters chosen after a failure", papers.Product: "products of others"}

// tallies counts what passes, a line a class.
func tallies(outcomes []papers.Outcome) []string {
	var lines []string
	for _, class := range papers.Classes() {
		own := ofClass(outcomes, class)
		if len(own) == 0 {
			continue
		}
		line := fmt.Sprintf("%s: %s, %d undecided, %d fail", classNames[class], passes(own),
			withVerdict(own, papers.Undecided), withVerdict(own, papers.Fail))
		if n := near(own); n != withVerdict(own, papers.Pass) {
			line += fmt.Sprintf("; %d in the band whatever their interval", n)
		}
		if n := withVerdict(own, ""); n > 0 {
			line += fmt.Sprintf(", %d not measured", n)
		}
		lines = append(lines, line)
	}
	return lines
}

// passes says how many numbers of a class pass.
func passes(own []papers.Outcome) string {
	return fmt.Sprintf("%d of %d pass", withVerdict(own, papers.Pass), len(own))
}

func ofClass(outcomes []papers.Outcome, class papers.Class) (own []papers.Outcome) {
	for _, v := range outcomes {
		if v.Class == class {
			own = append(own, v)
		}
	}
	return own
}

func withVerdict(outcomes []papers.Outcome, verdict papers.Verdict) (n int) {
	for i := range outcomes {
		if outcomes[i].Verdict == verdict {
			n++
		}
	}
	return n
}

// near counts the numbers that would pass without an interval.
func near(own []papers.Outcome) (n int) {
	for i := range own {
		if own[i].Near() {
			n++
		}
	}
	return n
}

// failures are the notes of claims that do not pass, each once.
func failures(outcomes []papers.Outcome) []string {
	var lines []string
	last := ""
	for i := range outcomes {
		v := &outcomes[i]
		if v.Measured() && v.Verdict != papers.Pass && v.ID != last && v.Note != "" {
			lines, last = append(lines, v.ID+": "+v.Note), v.ID
		}
	}
	return lines
}

// claimName distinguishes the numbers of one claim.
func claimName(v *papers.Outcome) string {
	if v.Index > 0 {
		return fmt.Sprintf("%s [%d]", v.ID, v.Index+1)
	}
	return v.ID
}

func claimed(v *papers.Outcome) string {
	switch v.Bound {
	case "below":
		return "< " + claimNumber(v, v.Value)
	case "above":
		return "> " + claimNumber(v, v.Value)
	}
	return claimNumber(v, v.Value)
}

func ours(v *papers.Outcome) string {
	if !v.Measured() {
		return "-"
	}
	return claimNumber(v, *v.Ours)
}

func interval(v *papers.Outcome) string {
	if !v.Measured() || *v.Low == *v.High {
		return "-"
	}
	return claimNumber(v, *v.Low) + " to " + claimNumber(v, *v.High)
}

func deviation(v *papers.Outcome) string {
	switch {
	case !v.Measured() || v.Bound != "":
		return "-"
	}
	return fmt.Sprintf("%+.0f %%", 100**v.Deviation)
}

func outcome(v *papers.Outcome) string {
	switch {
	case !v.Measured():
		return strings.TrimPrefix(v.Note, "not yet measured: ")
	case v.Verdict == papers.Fail:
		return "FAIL"
	}
	return string(v.Verdict)
}

// claimNumber prints a number of a claim in its unit.
func claimNumber(v *papers.Outcome, x float64) string {
	switch v.Kind {
	case "share":
		return fmt.Sprintf("%.1f %%", 100*x)
	case "bandwidth":
		return fmt.Sprintf("%.1f GB/s", x)
	case "points":
		return fmt.Sprintf("%.2f points", x)
	case "seconds":
		return digits(x) + " s"
	}
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0fx", x)
	}
	return fmt.Sprintf("%.2fx", x)
}
