package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// line is a whole question without a file.
var line = []string{"plan", "--model", "llama3.1-8b", "--gpus", "h100,h200", "--input", "2k",
	"--output", "200", "--rate", "1200/min", "--ttft", "1s", "--tbt", "100ms", "--json"}

// answered is what the tests read of an answer.
type answered struct {
	Question struct {
		GPUs, Systems []string
		Prompts       struct{ Mean float64 } `json:"prompt_tokens"`
		Load, SLO     string
	}
	Choice struct {
		Engine     string
		Replicas   int
		USDPerHour float64 `json:"usd_per_hour"`
	}
	Seeds []int
}

// TestPlanOfALine: a line asks for all, by the current vLLM and short names of cards.
func TestPlanOfALine(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, errs := runHere(t.Context(), shared, line...)
	var a answered
	if err := json.Unmarshal([]byte(out), &a); err != nil || status != exitOK || errs != "" {
		t.Fatalf("status %d, stderr %q, %v", status, errs, err)
	}
	q := &a.Question
	if strings.Join(q.GPUs, " ") != "h100-80gb h200" || q.Prompts.Mean != 2000 ||
		q.Load != "20 requests/s, poisson" || !strings.HasPrefix(a.Choice.Engine, "vllm-0.1") ||
		!strings.HasPrefix(q.SLO, "P99 TTFT <= 1 s, P99 TBT <= 0.1 s, ") || a.Choice.Replicas == 0 {
		t.Errorf("answer %+v", a)
	}
}

// TestPlanFlagsOverAFile: flags set the keys of a file, and cards are in the place of its axis.
func TestPlanFlagsOverAFile(t *testing.T) {
	path := testkit.Write(t, "buy.toml", purchased)
	status, out, errs := runHere(t.Context(), shared, "plan", path, "--gpus", "h200", "--rate", "5/s",
		"--input", "uniform(1k, 3k)", "--json")
	var a answered
	if err := json.Unmarshal([]byte(out), &a); err != nil || status != exitOK || errs != "" {
		t.Fatalf("status %d, stderr %q, %v", status, errs, err)
	}
	if q := &a.Question; strings.Join(q.GPUs, " ") != "h200" || q.Load != "5 requests/s, poisson" ||
		q.Prompts.Mean < 1900 || q.Prompts.Mean > 2100 {
		t.Errorf("answer %+v", a)
	}
}

func TestPlanFlagsRefuse(t *testing.T) {
	t.Chdir(t.TempDir())
	with := func(flag, value string) (args []string) {
		for i, arg := range line {
			if i > 0 && line[i-1] == flag {
				arg = value
			}
			args = append(args, arg)
		}
		return args
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{line[:9], "--rate, --ttft or --tbt: missing"},
		{with("--gpus", "a100"), "several cards begin so; name one or more of a100-40gb, a100-80gb"},
		{with("--gpus", "b100"), "--gpus b100: no such card; use a100-40gb"},
		{with("--rate", "5s"), `has the unit "s"; want a number`},
		{with("--input", "64K"), "write 64k or 64Ki"},
		{with("--tbt", "5%"), `has the unit "%"`},
		{with("--input", "500k"), "no candidate has room for the traffic"},
	} {
		status, _, errs := runHere(t.Context(), shared, c.args...)
		if status != exitFailed || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q, want %q", c.args, status, errs, c.want)
		}
	}
}
