package traces

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// law is a distribution with the mean and variance that its formula has.
type law struct {
	text           string
	mean, variance float64
	least, most    int
}

// drawLaw draws a distribution that tokens resolve: rounding adds 1/12 to a variance.
func drawLaw(t *rapid.T) law {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	switch rapid.SampledFrom([]string{"fixed", "uniform", "normal", "lognormal",
		"zipf"}).Draw(t, "law") {
	case "fixed":
		k := n("tokens", 1, 100_000)
		return law{fmt.Sprintf("fixed(%d)", k), float64(k), 0, k, k}
	case "uniform":
		a := n("least", 1, 5000)
		b := a + n("width", 0, 20_000)
		w := float64(b - a + 1)
		return law{fmt.Sprintf("uniform(%d, %d)", a, b), float64(a+b) / 2, (w*w - 1) / 12, a, b}
	case "normal": // truncated at 1/2 and max + 1/2: the truncated normal's moments
		mean, sd := float64(n("mean", 100, 5000)), float64(n("sd", 20, 4000))
		most := int(mean) + n("above", 50, 9000)
		unit := distuv.UnitNormal
		a, b := (0.5-mean)/sd, (float64(most)+0.5-mean)/sd
		z, pa, pb := unit.CDF(b)-unit.CDF(a), unit.Prob(a), unit.Prob(b)
		shift := (pa - pb) / z
		return law{fmt.Sprintf("normal(%g, %g, %d)", mean, sd, most),
			mean + sd*shift, sd*sd*(1+(a*pa-b*pb)/z-shift*shift) + 1./12, 1, most}
	case "lognormal":
		median, sigma := float64(n("median", 200, 20_000)), float64(n("hundredths of sigma", 5, 80))/100
		mean := median * math.Exp(sigma*sigma/2)
		return law{fmt.Sprintf("lognormal(%g, %g)", median, sigma), mean,
			mean*mean*math.Expm1(sigma*sigma) + 1./12, 1, rows.MaxTokens}
	}
	s, most := float64(n("tenths of s", 0, 15))/10, n("max", 1, 3000)
	var sum, mean, square float64
	for k := 1; k <= most; k++ {
		p := math.Pow(float64(k), -s)
		sum, mean, square = sum+p, mean+p*float64(k), square+p*float64(k)*float64(k)
	}
	mean /= sum
	return law{fmt.Sprintf("zipf(%g, %d)", s, most), mean, square/sum - mean*mean, 1, most}
}

// Lengths have the moments of their formulas, and are within their bounds.
func TestMomentsOfLengths(t *testing.T) {
	const n = 40_000
	rapid.Check(t, func(t *rapid.T) {
		want := drawLaw(t)
		l, err := ParseLengths("k", want.text)
		if err != nil {
			t.Fatal(err)
		}
		rng := des.Rand(rapid.Uint64().Draw(t, "seed"), "test")
		x := make([]float64, n)
		for i := range x {
			v := l.Quantile((float64(i) + rng.Float64()) / n) // stratified: little noise
			if v < want.least || v > want.most {
				t.Fatalf("%s: %d", want.text, v)
			}
			x[i] = float64(v)
		}
		mean, variance := stat.MeanVariance(x, nil)
		sd := math.Sqrt(want.variance)
		if math.Abs(mean-want.mean) > 0.01*sd+1e-9 || math.Abs(variance-want.variance) > 0.1*
			want.variance+1e-9 {
			t.Fatalf("%s: mean %g, variance %g; want %g, %g", want.text, mean, variance, want.mean,
				want.variance)
		}
	})
}

// The quantiles rise with u, from the first to the last length that there is.
func TestQuantilesOfLengthsRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := ParseLengths("k", drawLaw(t).text)
		if err != nil {
			t.Fatal(err)
		}
		u := rapid.Float64Range(0, math.Nextafter(1, 0))
		a, b := u.Draw(t, "u"), u.Draw(t, "v")
		if l.Quantile(min(a, b)) > l.Quantile(max(a, b)) {
			t.Fatalf("%s falls between %g and %g", l, a, b)
		}
	})
}

// Lengths take tokens in thousands.
func TestLengthsWithUnits(t *testing.T) {
	for text, plain := range map[string]string{
		"fixed(64k)":               "fixed(64000)",
		"fixed(64Ki)":              "fixed(65536)",
		"uniform(32k,128k)":        "uniform(32000, 128000)",
		"lognormal(8k, 0.5, 1M)":   "lognormal(8000, 0.5, 1000000)",
		"normal(1.5k, 300 tokens)": "normal(1500, 300)",
	} {
		l, err := ParseLengths("k", text)
		want, plainErr := ParseLengths("k", plain)
		if err != nil || plainErr != nil {
			t.Fatal(text, err, plainErr)
		}
		for _, u := range []float64{0, 0.3, 0.999} {
			if got, want := l.Quantile(u), want.Quantile(u); got != want {
				t.Errorf("%s at %g is %d, %s has %d", text, u, got, plain, want)
			}
		}
	}
}

// Errors about the turns of a session count turns.
func TestTurnsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"fixed(0)":   "turns = 0 is not between",
		"fixed(1.5)": "turns = 1.5 is not a whole number of turns; want fixed(turns)",
		"3":          "want a distribution of turns: fixed(turns), ",
	} {
		_, err := ParseLengths("sessions.turns", text)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "tokens") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestLengthsRefused(t *testing.T) {
	for _, text := range []string{
		"", "200", "fixed(200", "lognorm(8192, 0.5)", "pareto(1, 2)", "fixed()", "fixed(0)",
		"fixed(1.5)", "fixed(1, 2)", "fixed(nan)", "fixed(1e400)", "uniform(9, 3)", "uniform(9)",
		"normal(100, 0)", "normal(100, 10, 50)", "normal(100, 10, 2, 3)", "lognormal(-5, 1)",
		"lognormal(100, x)", "lognormal(100, 1, 99)", "zipf(-1, 100)", "zipf(1.1, 10000000000)",
		"fixed(200))", "fixed(64K)", "fixed(100ms)", "lognormal(8k, 1k)", "(3)",
	} {
		_, err := ParseLengths("workload.prompt_lengths", text)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(),
			fmt.Sprintf("workload.prompt_lengths = %q: ", text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Prompts and outputs draw from streams of their own.
func TestOutputLengthsDoNotMovePrompts(t *testing.T) {
	prompts := func(output string, seed uint64) (p []int) {
		s := open(t, seed, func(s *Spec) {
			s.Trace, s.PromptLengths, s.OutputLengths, s.Requests = Synthetic,
				"lognormal(8192, 0.5)", output, 50
		})
		for _, a := range collect(t, s) {
			p = append(p, a.Prompt)
		}
		return p
	}
	a, b, c := prompts("fixed(20)", 1), prompts("zipf(1.2, 500)", 1), prompts("fixed(20)", 2)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("prompts change with the distribution of outputs")
	}
	if fmt.Sprint(a) == fmt.Sprint(c) {
		t.Error("different seeds give equal prompts")
	}
}

// FuzzLengths: whatever the text is, parsing must not panic, an error is one line that begins
// with key and value, and what is accepted gives lengths of tokens.
func FuzzLengths(f *testing.F) {
	for _, form := range forms {
		f.Add(form.example, 0.5)
		f.Add(form.usage, 0.0)
	}
	f.Add("lognormal(1, 10, 1)", 0.999)
	f.Add("normal(1,1e9,1)", 0.0)
	f.Fuzz(func(t *testing.T, text string, u float64) {
		l, err := ParseLengths("key", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "key = ") || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			return
		}
		if !(u >= 0 && u < 1) {
			u = 0.5
		}
		if v := l.Quantile(u); v < 1 || v > rows.MaxTokens {
			t.Fatalf("%q at %g: %d", text, u, v)
		}
	})
}
