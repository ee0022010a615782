package whatif

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Values of two systems by seed, each from the largest rate that holds to the smallest that fails.
func TestBetterBySeeds(t *testing.T) {
	value := func(spans ...span) *Value { return &Value{spans: spans} }
	goodput, ttft := Metric{Higher: true}, Metric{}
	for name, c := range map[string]struct {
		m    *Metric
		a, b *Value
		want Verdict
	}{
		"apart":           {&goodput, value(span{0.8, 0.88}), value(span{0.7, 0.77}), Holds},
		"one step":        {&goodput, value(span{0.8, 0.88}), value(span{0.75, 0.82}), Undecided},
		"equal":           {&goodput, value(span{0.8, 0.88}), value(span{0.8, 0.88}), Undecided},
		"below":           {&goodput, value(span{0.5, 0.55}), value(span{0.7, 0.77}), Fails},
		"at least":        {&goodput, value(span{8, math.Inf(1)}), value(span{0.7, 0.77}), Holds},
		"seeds disagree":  {&goodput, value(points(2, 1)...), value(points(1, 2)...), Undecided},
		"lower is better": {&ttft, value(points(1, 2)...), value(points(1.5, 2.5)...), Holds},
		"nobody serves":   {&ttft, &Value{none: true}, &Value{none: true}, Undecided},
		"who serves":      {&ttft, value(span{9, 9}), &Value{none: true}, Holds},
		"who does not":    {&ttft, &Value{none: true}, value(span{9, 9}), Fails},
		"five, one astray": {&ttft, value(points(1, 1, 1, 1, 2.1)...),
			value(points(2, 2, 2, 2, 2)...), Holds},
		"four, one astray": {&ttft, value(points(1, 1, 1, 2.1)...),
			value(points(2, 2, 2, 2)...), Undecided},
	} {
		if got := c.m.better(c.a, c.b); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func points(values ...float64) (spans []span) {
	for _, v := range values {
		spans = append(spans, span{v, v})
	}
	return spans
}

// A threshold known between two values is both: the search ends within 2 % of each.
func TestCrossingIsAnInterval(t *testing.T) {
	for name, c := range map[string]struct {
		fails, holds float64 // below and above which it is known
		low, high    float64 // 0: not in the range of 1 to 100
		text         string
	}{
		"inside":      {10, 20, 10, 20, "; between them it is undecided"},
		"a point":     {10, 10, 10, 10, ""},
		"no top":      {10, 1000, 10, 0, "undecided at 10"},
		"no bottom":   {0.5, 20, 0, 20, "undecided at rate = 19"},
		"nothing":     {0.5, 1000, 0, 0, "undecided at rate = 1 and at 100: no threshold between"},
		"fails":       {1000, 2000, 1, 100, "no at rate = 1 and at 100: no threshold between"},
		"one step up": {3.1, 3.3, 3.1, 3.3, "; between them it is undecided"},
	} {
		th := test{Threshold: &Threshold{Yes: "yes", No: "no", holds: func(_ context.Context, _ *test,
			s []config.Setting) (a Answer, err error) {
			v, err := strconv.ParseFloat(fmt.Sprint(s[0].Value), 64)
			a.Verdict = Undecided
			if v < c.fails {
				a.Verdict = Fails
			} else if v >= c.holds {
				a.Verdict = Holds
			}
			return a, err
		}}, r: ranges(t, "rate=1..100")[0]}
		x, err := th.find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, side := range []struct {
			what string
			got  *float64
			want float64
		}{{"low", x.Low, c.low}, {"high", x.High, c.high}} {
			if (side.got == nil) != (side.want == 0) ||
				side.got != nil && math.Abs(*side.got/side.want-1) > 0.021 {
				t.Errorf("%s: %s is %v, want %v: %s", name, side.what, side.got, side.want, x.Text)
			}
		}
		if !strings.Contains(x.Text, c.text) {
			t.Errorf("%s: %q, want %q in it", name, x.Text, c.text)
		}
	}
}
