package capacity

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
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
		s, err := config.LoadPlan(testkit.Rewrite(t, "plan.toml", text), nil)
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
