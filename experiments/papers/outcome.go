package papers

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// Outcome is one number of a claim, and our number.
type Outcome struct {
	ID        string   `json:"id"`
	Index     int      `json:"index"` // of the number within its claim
	Paper     string   `json:"paper"`
	Where     string   `json:"where"`
	Text      string   `json:"text"`
	Kind      string   `json:"kind"`
	Bound     string   `json:"bound"` // "", or what ours must be: below, above
	Value     float64  `json:"value"`
	Ours      *float64 `json:"ours"` // nil when not measured
	Low       *float64 `json:"low"`  // 95 % interval over seeds
	High      *float64 `json:"high"`
	Deviation *float64 `json:"deviation"` // relative
	Class     Class    `json:"class"`
	Verdict   Verdict  `json:"verdict"` // "" when not measured
	Note      string   `json:"note"`
}

// Verdict compares the 95 % interval of our number with the band around the paper's: within 20 %,
// or on the right side of a bound.
type Verdict string

const (
	Pass      Verdict = "pass"      // the whole interval is in the band
	Undecided Verdict = "undecided" // a part of it is
	Fail      Verdict = "fail"      // none of it is
)

// Measured reports whether our own number exists.
func (v *Outcome) Measured() bool { return v.Ours != nil }

// tolerance is the half width of the band around a paper's number, relative to the number.
const tolerance = 0.2

// Judge measures claims from the results of a Studies in dir. Claims without a measurement are
// listed without a number.
func Judge(claims []Claim, dir string) ([]Outcome, error) {
	r := newResults(dir)
	return judge(claims, func(v *Outcome, m *measurement) error {
		ours, low, high, err := r.estimate(m)
		v.settle(ours, low, high)
		return err
	})
}

// Compare is Judge without intervals, for results that are only compared with others of the same
// arrivals: Low and High equal our number.
func Compare(claims []Claim, dir string) ([]Outcome, error) {
	r := newResults(dir)
	return judge(claims, func(v *Outcome, m *measurement) error {
		ours, err := r.measure(m)
		v.settle(ours, ours, ours)
		return err
	})
}

// Null judges a model without any effect of the papers' mechanisms. All systems of a comparison
// have one curve, so a ratio is 1; a share and a gain are 0. If claims.toml defines it, a number is
// measured on the results in dir: a bandwidth is the bandwidth of one memcpy per block, and seconds
// on eight cards are an eighth of dense attention's seconds on one.
func Null(claims []Claim, dir string) ([]Outcome, error) {
	r := newResults(dir)
	return judge(claims, func(v *Outcome, m *measurement) (err error) {
		ours := 0.0
		switch {
		case m.Null != nil:
			ours, err = r.measure(m.with(m.Null))
		case v.Kind == "ratio" || v.Kind == "speedup":
			ours = 1
		}
		v.settle(ours, ours, ours)
		return err
	})
}

// judge lists the numbers of claims; settle fills in ours.
func judge(claims []Claim, settle func(*Outcome, *measurement) error) ([]Outcome, error) {
	var outcomes []Outcome
	for _, c := range claims {
		for i, value := range c.Values {
			m := c.measured(i)
			v := Outcome{ID: c.ID, Index: i, Paper: c.Paper, Where: c.Where, Text: c.text(i), Kind: c.Kind,
				Value: value, Class: c.class(i), Bound: m.Bound, Note: c.Note}
			if len(m.From) == 0 {
				v.Note = "not yet measured"
			} else if err := settle(&v, m); err != nil {
				return nil, fmt.Errorf("claims.toml: %s: %w", c.ID, err)
			}
			outcomes = append(outcomes, v)
		}
	}
	return outcomes, nil
}

// settle sets our number and its verdict.
func (v *Outcome) settle(ours, low, high float64) {
	deviation := (ours - v.Value) / v.Value
	v.Ours, v.Low, v.High, v.Deviation = &ours, &low, &high, &deviation
	least, most := v.band()
	switch {
	case least <= low && high <= most:
		v.Verdict = Pass
	case high < least || most < low:
		v.Verdict = Fail
	default:
		v.Verdict = Undecided
	}
}

// band returns the range of numbers that agree with the paper's.
func (v *Outcome) band() (least, most float64) {
	switch v.Bound {
	case below:
		return math.Inf(-1), v.Value
	case above:
		return v.Value, math.Inf(1)
	}
	return v.Value * (1 - tolerance), v.Value * (1 + tolerance)
}

// Near reports whether our number is in the band, whatever its interval.
func (v *Outcome) Near() bool {
	least, most := v.band()
	return v.Measured() && least <= *v.Ours && *v.Ours <= most
}

// SortByClass sorts independent evidence first. The order within a class stays.
func SortByClass(outcomes []Outcome) {
	slices.SortStableFunc(outcomes, func(a, b Outcome) int {
		return slices.Index(Classes(), a.Class) - slices.Index(Classes(), b.Class)
	})
}

// estimate measures on all seeds. The 95 % interval is a jackknife interval: the measurement
// repeated without each of the seeds.
func (r *results) estimate(m *measurement) (ours, low, high float64, err error) {
	r.left = nil
	if ours, err = r.measure(m); err != nil {
		return 0, 0, 0, err
	}
	seeds, err := r.seeds(m.From)
	if err != nil || len(seeds) < 2 {
		return ours, ours, ours, err
	}
	n := float64(len(seeds))
	pseudo := make([]float64, len(seeds))
	for i, seed := range seeds {
		r.left = &seed
		without, err := r.measure(m)
		if err != nil {
			return 0, 0, 0, err
		}
		pseudo[i] = n*ours - (n-1)*without
	}
	r.left = nil
	_, half := stats.Mean(pseudo, 0.95)
	return ours, ours - half, ours + half, nil
}
