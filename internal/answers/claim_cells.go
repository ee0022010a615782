package answers

import (
	"fmt"
	"math"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// claimName distinguishes the numbers of one claim.
func claimName(v *papers.Outcome) string {
	if v.Index > 0 {
		return fmt.Sprintf("%s [%d]", v.ID, v.Index+1)
	}
	return v.ID
}

func claimed(v *papers.Outcome) doc.Cell {
	sign := map[string]string{"below": "< ", "above": "> "}[v.Bound]
	return doc.As(v.Value, sign+claimNumber(v, v.Value))
}

func ours(v *papers.Outcome) doc.Cell {
	if !v.Measured() {
		return doc.None()
	}
	return doc.As(*v.Ours, claimNumber(v, *v.Ours))
}

func interval(v *papers.Outcome) string {
	if !v.Measured() || *v.Low == *v.High {
		return "-"
	}
	return claimNumber(v, *v.Low) + " to " + claimNumber(v, *v.High)
}

func deviation(v *papers.Outcome) doc.Cell {
	if !v.Measured() || v.Bound != "" {
		return doc.None()
	}
	return doc.As(100**v.Deviation, fmt.Sprintf("%+.0f %%", 100**v.Deviation))
}

func verdict(v *papers.Outcome) string {
	switch {
	case !v.Measured():
		return strings.TrimPrefix(v.Note, "not yet measured: ")
	case v.Verdict == papers.Fail:
		return "FAIL"
	}
	return string(v.Verdict)
}

// oursJudged returns our number with its verdict.
func oursJudged(v *papers.Outcome) string {
	if !v.Measured() {
		return "-"
	}
	return ours(v).String() + " " + verdict(v)
}

// claimNumber formats a number of a claim in its unit.
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
