package traces

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/units"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A Lengths is a distribution of whole numbers of tokens, each at least 1, as its text has it:
//
//	fixed(tokens)
//	uniform(least, most)           every length as likely
//	normal(mean, sd[, max])        rounded
//	lognormal(median, sigma[, max])
//	                               rounded; sigma is the deviation of the natural logarithm
//	zipf(s, max)                   P(k) in proportion to k^-s, k = 1 ... max
//
// Tokens may be written as 64k (64,000) or 64Ki (65,536). Distributions are truncated at 1 and max
// and renormalised, so that no probability accumulates at a bound. The default max is
// rows.MaxTokens.
type Lengths struct {
	text     string
	quantile func(u float64) int // inverse CDF at u in [0, 1)
}

// longestZipf bounds the table of a Zipf distribution to 8 MiB.
const longestZipf = 1 << 20

// argument is one number of a form, with its bounds.
type argument struct {
	name        string
	least, most float64
	whole       bool
	unit        string // that its text may have
}

func tokensOf(name string) argument { return argument{name, 1, rows.MaxTokens, true, "tokens"} }

// A form is one kind of distribution.
type form struct {
	usage     string // name and arguments, as the help has them
	arguments []argument
	optional  int // number of optional arguments, at the end
	example   string
	make      func(v []float64) (quantile func(u float64) int, problem string)
}

// forms are the known forms. A max must not be below the middle of a distribution, because
// truncation would change its shape.
var forms = []form{
	{"fixed(tokens)", []argument{tokensOf("tokens")}, 0, "fixed(200)", fixedLength},
	{"uniform(least, most)", []argument{tokensOf("least"), tokensOf("most")}, 0,
		"uniform(100, 4000)", uniformLengths},
	{"normal(mean, sd[, max])", []argument{{"mean", 1, rows.MaxTokens, false, "tokens"},
		{"sd", 1e-3, rows.MaxTokens, false, "tokens"}, tokensOf("max")}, 1, "normal(2000, 300)",
		func(v []float64) (func(float64) int, string) {
			return rounded(distuv.Normal{Mu: v[0], Sigma: v[1]}, v, "mean")
		}},
	{"lognormal(median, sigma[, max])", []argument{{"median", 1, rows.MaxTokens, false, "tokens"},
		{"sigma", 1e-3, 10, false, ""}, tokensOf("max")}, 1, "lognormal(8192, 0.5)",
		func(v []float64) (func(float64) int, string) {
			return rounded(distuv.LogNormal{Mu: math.Log(v[0]), Sigma: v[1]}, v, "median")
		}},
	{"zipf(s, max)", []argument{{"s", 0, 100, false, ""}, {"max", 1, longestZipf, true, "tokens"}}, 0,
		"zipf(1.1, 32768)", zipfLengths},
}

func (f form) name() string {
	name, _, _ := strings.Cut(f.usage, "(")
	return name
}

func fixedLength(v []float64) (func(float64) int, string) {
	return func(float64) int { return int(v[0]) }, ""
}

func uniformLengths(v []float64) (func(float64) int, string) {
	if v[1] < v[0] {
		return nil, "most is below least"
	}
	return func(u float64) int { return int(v[0] + math.Floor(u*(v[1]-v[0]+1))) }, ""
}

// rounded truncates a continuous distribution to [1/2, max + 1/2), so that it rounds to 1 ... max.
// Its arguments are the middle, the width and, if given, the max.
func rounded(d interface {
	CDF(x float64) float64
	Quantile(p float64) float64
}, v []float64, middle string) (func(float64) int, string) {
	top := float64(rows.MaxTokens)
	if len(v) > 2 {
		top = v[2]
	}
	if top < v[0] {
		return nil, "max is below the " + middle
	}
	low, high := d.CDF(0.5), d.CDF(top+0.5)
	return func(u float64) int {
		return int(min(max(math.Round(d.Quantile(low+u*(high-low))), 1), top))
	}, ""
}

func zipfLengths(v []float64) (func(float64) int, string) {
	below := make([]float64, int(v[1])) // below[k-1] is proportional to P(length <= k)
	sum := 0.0
	for k := range below {
		sum += math.Pow(float64(k+1), -v[0])
		below[k] = sum
	}
	return func(u float64) int {
		return 1 + min(sort.SearchFloat64s(below, u*sum), len(below)-1)
	}, ""
}

// String returns the text that was parsed.
func (l Lengths) String() string { return l.text }

// Quantile returns the inverse CDF at u in [0, 1).
func (l Lengths) Quantile(u float64) int { return l.quantile(u) }

// ParseLengths parses the text of a distribution, the value of a key. An error begins with key and
// text and lists the known forms.
func ParseLengths(key, text string) (Lengths, error) {
	fault := func(format string, args ...any) (Lengths, error) {
		said := fmt.Sprintf(format, args...)
		if key == "sessions.turns" { // the only distribution not in tokens
			said = strings.ReplaceAll(said, "tokens", "turns")
		}
		return Lengths{}, fmt.Errorf("%s = %q: %s", key, rows.Short(text), said)
	}
	name, rest, ok := strings.Cut(strings.TrimSpace(text), "(")
	inner, closed := strings.CutSuffix(strings.TrimSpace(rest), ")")
	name = strings.TrimSpace(name)
	if name == "" || !ok || !closed {
		return fault("want a distribution of tokens: %s", LengthForms())
	}
	var names []string
	for _, f := range forms {
		names = append(names, f.name())
		if f.name() != name {
			continue
		}
		values, problem := f.parse(inner)
		if problem != "" {
			return fault("%s; want %s, as in %s", problem, f.usage, f.example)
		}
		quantile, problem := f.make(values)
		if problem != "" {
			return fault("%s", problem)
		}
		return Lengths{strings.TrimSpace(text), quantile}, nil
	}
	return fault("no distribution of that name%s; use %s", nearest.Meant(name, names), LengthForms())
}

// LengthForms describes all forms with their arguments and one example.
func LengthForms() string {
	var all []string
	for _, f := range forms {
		all = append(all, f.usage)
	}
	return strings.Join(all, ", ") + `, as in "lognormal(8192, 0.5)"`
}

// parse parses the numbers between the brackets.
func (f form) parse(inner string) (values []float64, problem string) {
	texts := strings.Split(inner, ",")
	if n := len(f.arguments); len(texts) > n || len(texts) < n-f.optional {
		return nil, rows.Plural(len(texts), "number") + " in brackets"
	}
	for i, text := range texts {
		a, text := f.arguments[i], strings.TrimSpace(text)
		v, err := units.Parse(text, a.unit)
		switch {
		case err != nil:
			return nil, fmt.Sprintf("%s = %q %v", a.name, rows.Short(text), err)
		case v < a.least || v > a.most:
			return nil, fmt.Sprintf("%s = %s is not between %s and %s", a.name, rows.Short(text),
				stats.Exact(a.least), stats.Exact(a.most))
		case a.whole && v != math.Trunc(v):
			return nil, fmt.Sprintf("%s = %s is not a whole number of tokens", a.name, rows.Short(text))
		}
		values = append(values, v)
	}
	return values, ""
}
