package papers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	_ "embed"

	"github.com/BurntSushi/toml"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sparseserve/sparseserve/experiments/config"
)

//go:embed claims.toml
var claimsTOML string

//go:embed claims_notes.toml
var claimNotesTOML string

// Claim is what a paper says, as one or more numbers.
type Claim struct {
	ID     string    `toml:"id"`
	Paper  string    `toml:"paper"`
	Where  string    `toml:"where"`
	Text   string    `toml:"text"`
	Kind   string    `toml:"kind"` // ratio | share | bandwidth | points | speedup | seconds
	Value  float64   `toml:"value"`
	Values []float64 `toml:"values"`
}

// Claims lists the claims of a paper, or of all papers, and of those the ones
// that are named, or all. It panics when the built-in table is broken.
func Claims(paper string, ids ...string) ([]Claim, error) {
	var table struct {
		Claim []Claim `toml:"claim"`
	}
	if _, err := toml.Decode(claimsTOML, &table); err != nil {
		panic(fmt.Sprintf("claims.toml: %v", err))
	}
	var papers, known []string
	var some []Claim
	for _, c := range table.Claim {
		if !slices.Contains(papers, c.Paper) {
			papers = append(papers, c.Paper)
		}
		if paper != "" && c.Paper != paper {
			continue
		}
		known = append(known, c.ID)
		if len(ids) == 0 || slices.Contains(ids, c.ID) {
			some = append(some, c)
		}
	}
	if known == nil {
		return nil, fmt.Errorf("no claims of a paper %q; there are %v%s", paper, papers,
			config.DidYouMean(paper, papers))
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, fmt.Errorf("no claim %q%s", id, config.DidYouMean(id, known))
		}
	}
	return some, nil
}

// numbers are the claim's values, one or several.
func (c *Claim) numbers() []float64 {
	if len(c.Values) > 0 {
		return c.Values
	}
	return []float64{c.Value}
}

// text says what number i is about. A text that ends in a list of as many things
// as there are numbers names that of the number.
func (c *Claim) text(i int) string {
	about, list, _ := strings.Cut(c.Text, ": ")
	if parts := strings.Split(list, ", "); len(parts) > 1 && len(parts) == len(c.Values) {
		return about + ": " + parts[i]
	}
	return c.Text
}

// Outcome is one number of a claim and ours.
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
	Deviation *float64 `json:"deviation"` // relative; in points for points
	Pass      bool     `json:"pass"`
	Note      string   `json:"note"`
}

// Measured says whether there is a number of ours.
func (v *Outcome) Measured() bool { return v.Ours != nil }

// Tolerances of claims without a bound.
const (
	ratioTolerance  = 0.2 // of the paper's number
	pointsTolerance = 3.0
)

// Judge measures claims from the results that a Studies left in dir. Claims that nothing
// measures are listed without a number.
func Judge(claims []Claim, dir string) ([]Outcome, error) {
	return judge(claims, dir, (*results).estimate)
}

// Compare is Judge without intervals, for results that are only to be compared
// with others of the same arrivals: Low and High are our number.
func Compare(claims []Claim, dir string) ([]Outcome, error) {
	return judge(claims, dir, (*results).number)
}

func judge(claims []Claim, dir string, estimate func(*results, measurement) (ours, low,
	high float64, err error)) ([]Outcome, error) {
	results := newResults(dir)
	notes, err := claimNotes()
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for _, c := range claims {
		for i, value := range c.numbers() {
			v := Outcome{ID: c.ID, Index: i, Paper: c.Paper, Where: c.Where, Text: c.text(i), Kind: c.Kind,
				Value: value, Note: notes[c.ID]}
			m, ok := measurements()[measureKey{c.ID, i}]
			if !ok {
				v.Note = "not yet measured"
				outcomes = append(outcomes, v)
				continue
			}
			v.Bound = m.bound
			ours, low, high, err := estimate(results, m)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.ID, err)
			}
			v.settle(ours, low, high)
			outcomes = append(outcomes, v)
		}
	}
	return outcomes, nil
}

// settle fills in our number and whether it passes.
func (v *Outcome) settle(ours, low, high float64) {
	deviation := ours - v.Value
	tolerance := pointsTolerance
	if v.Kind != "points" {
		deviation, tolerance = deviation/v.Value, ratioTolerance
	}
	v.Ours, v.Low, v.High, v.Deviation = &ours, &low, &high, &deviation
	switch v.Bound {
	case below:
		v.Pass = ours <= v.Value
	case above:
		v.Pass = ours >= v.Value
	default:
		v.Pass = math.Abs(deviation) <= tolerance
	}
}

// claimNotes are remarks on claims: what their number is measured on, and what
// is known about why it differs.
func claimNotes() (map[string]string, error) {
	notes := map[string]string{}
	if _, err := toml.Decode(claimNotesTOML, &notes); err != nil {
		return nil, fmt.Errorf("claims_notes.toml: %w", err)
	}
	return notes, nil
}

// number measures on all seeds.
func (r *results) number(m measurement) (ours, low, high float64, err error) {
	r.left = nil
	ours, err = m.measure(r)
	return ours, ours, ours, err
}

// estimate measures on all seeds. The 95 % interval is the jackknife's: the
// measurement repeated without each of the seeds.
func (r *results) estimate(m measurement) (ours, low, high float64, err error) {
	if ours, _, _, err = r.number(m); err != nil {
		return 0, 0, 0, err
	}
	seeds, err := r.seeds(m.from)
	if err != nil || len(seeds) < 2 {
		return ours, ours, ours, err
	}
	n := float64(len(seeds))
	pseudo := make([]float64, len(seeds))
	for i, seed := range seeds {
		r.left = &seed
		without, err := m.measure(r)
		if err != nil {
			return 0, 0, 0, err
		}
		pseudo[i] = n*ours - (n-1)*without
	}
	r.left = nil
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * stat.StdDev(pseudo, nil) /
		math.Sqrt(n)
	return ours, ours - half, ours + half, nil
}

// ClaimExperiments names the experiments that claims are measured on.
func ClaimExperiments(claims []Claim) []string {
	var names []string
	for _, c := range claims {
		for i := range c.numbers() {
			for _, name := range measurements()[measureKey{c.ID, i}].from {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// Apart says whether a claim is measured on an experiment that takes so long
// that it runs only when it is asked for by name.
func (c Claim) Apart() bool { return slices.ContainsFunc(ClaimExperiments([]Claim{c}), apart) }
