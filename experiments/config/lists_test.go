package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A list of a key that has one value is an axis: of a file, the first key slowest, then of flags. A
// flag replaces the list of a file.
func TestListsAreAxes(t *testing.T) {
	file := testkit.Write(t, "s.toml", "system.preset = \"sparseserve\"\nworkload.rate = 0.1\n"+
		"[selection]\nbudget_tokens = [1024, 2048]\n[[axis]]\ngrid.model = [\"llama3-8b\", \"lwm-7b\"]\n")
	for _, c := range []struct {
		flags []string
		axes  string
		want  int
		error string
	}{
		{nil, "model selection.budget_tokens", 4, ""},
		{[]string{"gpu=[h100, a100-40gb]"}, "model selection.budget_tokens gpu", 8, ""},
		{[]string{"selection.budget_tokens=512"}, "model", 2, ""},
		{[]string{"selection.budget_tokens=[512]", "card.link_h2d=[10,20,30]"},
			"model selection.budget_tokens card.link_h2d", 6, ""},
		{[]string{"seed=[1,2]"}, "model selection.budget_tokens", 8, ""},
		{[]string{"selection.budget_tokens=[512,x]"}, "", 0, "want an integer"},
		{[]string{"gpu=h100,a100-40gb"}, "", 0, "simulate and plan run each of a list"},
	} {
		s, err := LoadSweep(t.Context(), file, c.flags)
		if c.error != "" || err != nil {
			if err == nil || c.error == "" || !strings.Contains(err.Error(), c.error) {
				t.Errorf("%q: %v, want %q", c.flags, err, c.error)
			}
			continue
		}
		if got := strings.Join(s.Axes, " "); got != c.axes || len(s.Runs()) != c.want {
			t.Errorf("%q: axes %s, %d runs; want %s, %d", c.flags, got, len(s.Runs()), c.axes, c.want)
		}
		budgets := map[int]bool{}
		for _, p := range s.Runs() {
			budgets[p.System.Selection.BudgetTokens] = true
		}
		if c.flags == nil && (len(budgets) != 2 || !budgets[1024] || !budgets[2048]) {
			t.Errorf("budgets %v", budgets)
		}
	}
	if _, err := Load(file, nil); err == nil {
		t.Error("one configuration takes lists")
	}
}
