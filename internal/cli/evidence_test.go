package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
)

// keptSet is a folder of experiments/validation and what it is validated with.
type keptSet struct{ folder, config, sets string }

const (
	onH100   = "gpu=h100-80gb "
	sessions = "workload.sessions=24 workload.rate=[1.5,3.0] "
	host     = "system.engine=experiments/validation/"
)

// evidence lists the rows of the README that are of kept live runs.
var evidence = []struct {
	row  string
	sets []keptSet
}{
	{"prompts of 8K to 128K tokens, H100", []keptSet{
		{"minference-h100", "minference", onH100 + "system.kv_gib=40 " + host + "h100-host.toml"}}},
	{"the same, H200", []keptSet{{"minference-h200", "minference", host + "h200-host.toml"}}},
	{"nine systems, LongBench, H100", []keptSet{
		{"longbench-h100", "longbench", onH100 + host + "h100-host.toml"}}},
	{"24 sessions, prefix cache, two H100s and an H200", []keptSet{
		{"prefix-h100", "prefix", onH100 + sessions + host + "h100-prefix-host.toml"},
		{"prefix-h100-second", "prefix", onH100 + sessions + host + "h100-prefix-second-host.toml"},
		{"prefix-h200", "prefix", sessions + host + "h200-prefix-host.toml"}}},
}

// The README says of kept live runs what validate recomputes from them: the least and the largest
// error of mean TTFT and TBT, and how many runs meet every goal.
func TestEvidence(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	rows := evidence
	if testing.Short() {
		rows = rows[:1]
	}
	for _, e := range rows {
		var runs []validate.ValidatedRun
		for _, s := range e.sets {
			runs = append(runs, revalidated(t, s)...)
		}
		met := 0
		var ttft, tbt span
		for i := range runs {
			if len(runs[i].Misses()) == 0 {
				met++
			}
			ttft.add(&runs[i], "ttft_mean_s")
			tbt.add(&runs[i], "tbt_mean_s")
		}
		inReadme(t, fmt.Sprintf("| %s | %s | %s | %d of %d |", e.row, ttft, tbt, met, len(runs)))
	}
}

// The README says of a record of vLLM what compare finds.
func TestEvidenceOfRecord(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	status, text, errs := runHere(t.Context(), run.NewSimulator().Run, "compare",
		"traces/testdata/measured/llama2-7b_h100_codegen.csv.gz", "--set", "model=llama2-7b", "--set",
		"gpu=h100-80gb", "--set", "system.max_requests=128", "--set", "system.max_tokens=2048", "--out",
		t.TempDir())
	if status != 0 {
		t.Fatal(errs)
	}
	found := func(figure string) string {
		_, rest, _ := strings.Cut(text, figure)
		cells := strings.Split(rest, "│")
		return strings.TrimSpace(cells[min(3, len(cells)-1)])
	}
	inReadme(t, fmt.Sprintf("| vLLM 0.15.1, Llama-2-7B, H100: 372 requests of a record | %s %% | "+
		"%s %% |", found("TTFT mean, s"), found("TPOT mean, ms")))
}

// inReadme says where the README lacks the beginning of a row.
func inReadme(t *testing.T, row string) {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n"+row) {
		t.Errorf("README.md lacks the row %s", row)
	}
}

// revalidated simulates the runs of a kept set, and returns those below saturation.
func revalidated(t *testing.T, s keptSet) (below []validate.ValidatedRun) {
	t.Helper()
	dir := t.TempDir()
	kept := os.DirFS(filepath.Join("experiments", "validation", s.folder))
	if err := os.CopyFS(dir, kept); err != nil {
		t.Fatal(err)
	}
	args := []string{"validate", "reuse", "experiments/validate-" + s.config + ".toml", "--out", dir}
	for _, set := range strings.Fields(s.sets) {
		args = append(args, "--set", set)
	}
	if status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...); status != 0 {
		t.Fatalf("%s: %s", s.folder, errs)
	}
	report, err := validate.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Runs {
		if !r.Saturated {
			below = append(below, r)
		}
	}
	return below
}

// span is the least and the largest of relative errors.
type span struct {
	least, most float64
	some        bool
}

func (s *span) add(r *validate.ValidatedRun, metric string) {
	c, _ := r.Of(metric)
	if !s.some {
		s.least, s.most, s.some = *c.Error, *c.Error, true
	}
	s.least, s.most = math.Min(s.least, *c.Error), math.Max(s.most, *c.Error)
}

func (s span) String() string { return fmt.Sprintf("%+.1f to %+.1f %%", 100*s.least, 100*s.most) }
