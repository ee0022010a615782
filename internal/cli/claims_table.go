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

// printClaims prints every number of every claim, then the notes of those that
// fail.
func printClaims(w io.Writer, outcomes []papers.Outcome) {
	t := newTable(w)
	t.AppendHeader(table.Row{"claim", "", "paper", "ours", "95 % interval", "deviation", ""})
	for i := range outcomes {
		v := &outcomes[i]
		t.AppendRow(table.Row{claimName(v), v.Where, claimed(v), ours(v), interval(v), deviation(v),
			outcome(v)})
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 5, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 6, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
	t.Render()
	fmt.Fprintln(w, tally(outcomes))
	if lines := failures(outcomes); len(lines) > 0 {
		fmt.Fprintln(w, "\nWhere they fail:")
		for _, line := range lines {
			fmt.Fprintln(w, "  "+text.WrapSoft(line, 110))
		}
	}
}

// tally counts what passes.
func tally(outcomes []papers.Outcome) string {
	passed, measured := 0, 0
	for i := range outcomes {
		if outcomes[i].Measured() {
			measured++
		}
		if outcomes[i].Pass {
			passed++
		}
	}
	s := fmt.Sprintf("%d of %d numbers pass: within 20 %%, points within 3, bounds kept.",
		passed, measured)
	if left := len(outcomes) - measured; left > 0 {
		s += fmt.Sprintf(" %d not yet measured.", left)
	}
	return s
}

// failures are the notes of claims that fail, each once.
func failures(outcomes []papers.Outcome) []string {
	var lines []string
	last := ""
	for i := range outcomes {
		v := &outcomes[i]
		if v.Measured() && !v.Pass && v.ID != last && v.Note != "" {
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
	case v.Kind == "points":
		return fmt.Sprintf("%+.2f points", *v.Deviation)
	}
	return fmt.Sprintf("%+.0f %%", 100**v.Deviation)
}

func outcome(v *papers.Outcome) string {
	switch {
	case !v.Measured():
		return strings.TrimPrefix(v.Note, "not yet measured: ")
	case v.Pass:
		return "pass"
	}
	return "FAIL"
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
