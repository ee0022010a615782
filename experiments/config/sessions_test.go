package config

import (
	"reflect"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A trace of sessions has lengths of its own where none are chosen; what is chosen stays, and what
// is written out loads to the same, a chosen 0 too.
func TestSessionsHaveDefaults(t *testing.T) {
	for _, c := range []struct {
		text           string
		turns, answers string
		prompts        int
		think          float64
		requests       int
	}{
		{"", "lognormal(2.4, 0.84)", "lognormal(275, 0.69)", 10, 370, 300},
		{"think_s = 0\noutput_lengths = \"fixed(9)\"\n[sessions]\nturns = \"fixed(3)\"\n" +
			"system_prompts = 0\n", "fixed(3)", "fixed(9)", 0, 0, 300},
		{"[sessions]\ncount = 4\n", "lognormal(2.4, 0.84)", "lognormal(275, 0.69)", 10, 370, 0},
	} {
		text := "[workload]\ntrace = \"sessions\"\nrate = 1\n" + c.text
		cfg, err := Load(testkit.Write(t, "s.toml", text), []string{"system.preset=vllm"})
		if err != nil {
			t.Fatal(err)
		}
		w := cfg[0].Workload
		if w.Turns != c.turns || w.OutputLengths != c.answers || w.SystemPrompts != c.prompts ||
			w.ThinkS != c.think || w.OutputScale != 1 || w.Requests != c.requests {
			t.Errorf("%q: %+v", c.text, w)
		}
		p := cfg[0]
		written, err := p.TOML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load(testkit.Write(t, "again.toml", string(written)), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if q := again[0]; !reflect.DeepEqual(p.Workload, q.Workload) {
			t.Errorf("%+v\nloads as\n%+v", p.Workload, q.Workload)
		}
	}
}
