package capacity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// A run is ended early by its times between tokens only where the tokens to come are known: not
// where speed decides which turns of conversations there are.
func TestEarlyNeedsKnownTokens(t *testing.T) {
	chats := testkit.Write(t, "chats.json", `[{"conversations": [{"from": "human", "value": "one two"},
{"from": "gpt", "value": "three four"}, {"from": "human", "value": "five"},
{"from": "gpt", "value": "six seven"}]}]`)
	for _, c := range []struct {
		trace, bound string
		early        bool
	}{
		{"sessions", "tbt_s = 0.1", false},
		{"sessions", "ttft_s = 0.1", true},
		{chats, "tbt_s = 0.1", false},
		{"", "tbt_s = 0.1", true},
	} {
		text := "model = \"llama3.1-8b\"\n[workload]\nrate = 1\nrequests = 4\n"
		if c.trace != "" {
			text += "trace = \"" + c.trace + "\"\n"
		}
		text += "[system]\npreset = \"vllm\"\n[slo]\n" + c.bound + "\n"
		s, err := config.LoadPlan(testkit.Rewrite(t, "plan.toml", text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Points()
		if err != nil {
			t.Fatal(err)
		}
		p := points[0].Point
		slo, err := limitsOf(&p)
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEarly(&p, slo, &traffic{})
		if err != nil || (e != nil) != c.early {
			t.Errorf("%q, %s: ended early %v, want %v (%v)", c.trace, c.bound, e != nil, c.early, err)
		}
	}
}

// A run is ended early only where its percentile is over the limit in the end, whatever the values
// that are still to come: of eleven values P99 is nine tenths of the way from the tenth to the
// eleventh, so that one value over the limit decides nothing and two do.
func TestTallyDecidesWhatIsMissed(t *testing.T) {
	bound := config.Bound{Name: "ttft", Stat: "p99", Limit: 1}
	one := newTally(bound, 11)
	if one.add(2); one.decided() {
		t.Error("one value of eleven decides P99")
	}
	if one.add(2); !one.decided() {
		t.Error("two values of eleven do not decide P99")
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		n, p := 1+r.IntN(300), []float64{50, 90, 95, 99}[r.IntN(4)]
		bound.Stat = fmt.Sprintf("p%g", p)
		tally, share := newTally(bound, float64(n)), r.Float64()*0.2
		var values []float64
		over := 0
		for range n {
			v := 1 + 2*roundingError
			if r.Float64() > share {
				v = 1
			} else {
				over++
			}
			values = append(values, v)
			tally.add(v)
		}
		slices.Sort(values)
		missed := stats.Of(values, p) > 1+roundingError
		if least := n - int(p/100*float64(n-1)); tally.decided() && !missed ||
			!tally.decided() && over >= least {
			t.Fatalf("%d of %d values are over: P%g decided %v, missed %v", over, n, p, tally.decided(),
				missed)
		}
	}
}
