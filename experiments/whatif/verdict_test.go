package whatif

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/bracket"
)

// Values of two systems by seed, each from the largest rate that holds to the smallest that fails.
func TestBetterBySeeds(t *testing.T) {
	value := func(spans ...span) *Value { return &Value{spans: spans} }
	goodput, ttft := Metric{Higher: true}, Metric{}
	for name, c := range map[string]struct {
		m    *Metric
		a, b *Value
		want bracket.Verdict
	}{
		"apart":           {&goodput, value(span{0.8, 0.88}), value(span{0.7, 0.77}), bracket.Holds},
		"one step":        {&goodput, value(span{0.8, 0.88}), value(span{0.75, 0.82}), bracket.Undecided},
		"equal":           {&goodput, value(span{0.8, 0.88}), value(span{0.8, 0.88}), bracket.Undecided},
		"below":           {&goodput, value(span{0.5, 0.55}), value(span{0.7, 0.77}), bracket.Fails},
		"at least":        {&goodput, value(span{8, math.Inf(1)}), value(span{0.7, 0.77}), bracket.Holds},
		"seeds disagree":  {&goodput, value(points(2, 1)...), value(points(1, 2)...), bracket.Undecided},
		"lower is better": {&ttft, value(points(1, 2)...), value(points(1.5, 2.5)...), bracket.Holds},
		"nobody serves":   {&ttft, &Value{none: true}, &Value{none: true}, bracket.Undecided},
		"who serves":      {&ttft, value(span{9, 9}), &Value{none: true}, bracket.Holds},
		"who does not":    {&ttft, &Value{none: true}, value(span{9, 9}), bracket.Fails},
		"five, one astray": {&ttft, value(points(1, 1, 1, 1, 2.1)...),
			value(points(2, 2, 2, 2, 2)...), bracket.Holds},
		"four, one astray": {&ttft, value(points(1, 1, 1, 2.1)...),
			value(points(2, 2, 2, 2)...), bracket.Undecided},
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
