package cli

import (
	"strings"
	"testing"
)

// Every command says which figures of a card are changed.
func TestChangedCardsAreSaid(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "a.toml", "model = \"llama3-8b\"\ngpu = \"h100-80gb\"\n[card]\n"+
		"hbm_bandwidth = 4000\n[workload]\nrequests = 5\nrate = 0.1\n[system]\npreset = \"vllm\"\n")
	writeFile(t, "record.csv", goodRecord)
	const changed = "h200 (changed: hbm_bandwidth = 4000)"
	for _, c := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"simulate", "a.toml", "--set", "gpu=h200"}, []string{changed}},
		{[]string{"goodput", "a.toml", "--set", "gpu=h200"}, []string{changed}},
		{[]string{"whatif", "a.toml", "--vary", "gpu=h100-80gb,h200", "--metric", "ttft_mean"},
			[]string{"h100-80gb (changed: hbm_bandwidth = 4000)"}},
		{[]string{"whatif", "a.toml", "--vary", "hbm_bandwidth=3000", "--metric", "ttft_mean"},
			[]string{"a factor of card.hbm_bandwidth = 4000: want a number from",
				"--vary card.hbm_bandwidth=3000"}},
		{[]string{"plan", "--model", "llama3-8b", "--gpus", "h200", "--input", "4k", "--output", "9",
			"--rate", "0.1", "--ttft", "3s", "--set", "card.hbm_bandwidth=4000"}, []string{changed}},
	} {
		_, out, errs := runHere(t.Context(), pretend, c.args...)
		for _, want := range c.wants {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%v: no %q in %s%s", c.args, want, out, errs)
			}
		}
	}
	_, out, errs := runHere(t.Context(), steadyServer, "compare", "record.csv", "a.toml", "--set",
		"gpu=h200")
	if !strings.Contains(out, changed) {
		t.Errorf("compare: %s%s", out, errs)
	}
}
