package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/experiments/validate"
)

const evidencePage = "docs/evidence.md"

// keptSet is a folder of live runs on an H200 in experiments/validation, and how it is validated.
type keptSet struct{ workload, folder, config, fitted string }

var keptSets = []keptSet{
	{"nine systems, LongBench", "longbench-h200", "longbench", "the host, to these runs"},
	{"prompts of 8K to 128K tokens", "minference-h200", "minference", "nothing"},
	{"48 sessions, prefix cache", "sessions-h200", "prefix", "nothing"},
}

// A column of the page's table of live runs is the least and the largest error of a metric.
var liveColumns = []struct{ metric, name string }{{"ttft_mean_s", "mean TTFT"},
	{"ttft_p99_s", "P99 TTFT"}, {"tbt_mean_s", "mean TBT"}, {"tbt_p99_s", "P99 TBT"},
	{"throughput_tok_s", "tok/s"}, {"blocks_loaded_per_step", "blocks loaded"}}

// The page of evidence has what validate recomputes from kept live runs, and the README repeats it.
// The page of the cost model has what each part is worth on the steps of these runs.
func TestEvidencePageOfLiveRuns(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	var live, commands strings.Builder
	ablation, legend := []string{"validate", "ablate", "--format", "md"}, "\n"
	live.WriteString("| workload | fitted |")
	for _, c := range liveColumns {
		fmt.Fprintf(&live, " %s |", c.name)
	}
	live.WriteString(" all goals met |\n|-|-|-:|-:|-:|-:|-:|-:|-:|\n")
	live.WriteString("| goal | |")
	for _, c := range liveColumns {
		fmt.Fprintf(&live, " %.0f %% |", 100*validate.Goals()[c.metric])
	}
	live.WriteString(" 80 % |\n")
	for i, s := range keptSets {
		commands.WriteString(s.command())
		if testing.Short() && i != 2 {
			continue
		}
		runs, dir := revalidated(t, s)
		legend += fmt.Sprintf("%d: %s. ", len(ablation)-3, s.workload)
		ablation = append(ablation, dir)
		met := 0
		spans := make([]span, len(liveColumns))
		for i := range runs {
			r := &runs[i]
			if len(r.Misses()) == 0 {
				met++
			}
			for j, column := range liveColumns {
				if c, _ := r.Of(column.metric); c.Live != 0 {
					spans[j].add(*c.Error)
				}
			}
		}
		row := fmt.Sprintf("| %s | %s |", s.workload, s.fitted)
		for _, x := range spans {
			row += " " + x.String() + " |"
		}
		row += fmt.Sprintf(" %d of %d |\n", met, len(runs))
		live.WriteString(row)
		if block := testkit.BlockOf(t, evidencePage, "live"); testing.Short() &&
			!strings.Contains(block, row) {
			t.Errorf("%s lacks the row %s", evidencePage, row)
		}
		inReadme(t, fmt.Sprintf("| %s, H200 | %s | %s | %d of %d |", s.workload, spans[0],
			spans[2], met, len(runs)))
	}
	if testing.Short() {
		return
	}
	testkit.Block(t, evidencePage, "live", live.String())
	testkit.Block(t, evidencePage, "commands", "```sh\n"+commands.String()+"```\n")
	status, table, errs := runHere(t.Context(), nil, ablation...)
	_, table, found := strings.Cut(table, "\n| concept |")
	table, _, _ = strings.Cut(table, "\n\n")
	if status != 0 || !found {
		t.Fatalf("ablation: status %d, %s", status, errs)
	}
	testkit.Block(t, "docs/cost-model.md", "ablation",
		strings.TrimSpace(legend)+"\n\n| concept |"+table+"\n")
}

// command is the page's command to recompute a set.
func (s *keptSet) command() string {
	return "sparseserve validate reuse experiments/validate-" + s.config +
		".toml --out experiments/validation/" + s.folder + "\n"
}

// revalidated simulates the runs of a kept set in a copy of its folder, and returns the runs below
// saturation and the copy.
func revalidated(t *testing.T, s keptSet) (below []validate.ValidatedRun, dir string) {
	t.Helper()
	dir = t.TempDir()
	kept := os.DirFS(filepath.Join("experiments", "validation", s.folder))
	if err := os.CopyFS(dir, kept); err != nil {
		t.Fatal(err)
	}
	args := []string{"validate", "reuse", "experiments/validate-" + s.config + ".toml", "--out", dir}
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
	return below, dir
}

// The page of evidence has what compare finds in a record of vLLM, and the README repeats two of
// its figures.
func TestEvidencePageOfRecord(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	out := t.TempDir()
	if status, _, errs := runHere(t.Context(), run.NewSimulator().Run, "compare",
		"traces/testdata/measured/llama2-7b_h100_codegen.csv.gz", "--set", "model=llama2-7b", "--set",
		"gpu=h100-80gb", "--set", "system.max_requests=128", "--set", "system.max_tokens=2048", "--out",
		out, "--force"); status != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(filepath.Join(out, "compare.json"))
	if err != nil {
		t.Fatal(err)
	}
	var figures []struct {
		Stage, Metric              string
		Measured, Simulated, Error float64
	}
	if err := json.Unmarshal(text, &figures); err != nil {
		t.Fatal(err)
	}
	columns := []struct{ metric, name string }{{"ttft_mean_s", "mean TTFT, ms"},
		{"ttft_p90_s", "P90"}, {"ttft_p99_s", "P99"}, {"tpot_mean_s", "mean TPOT, ms"},
		{"tpot_p90_s", "P90"}, {"tpot_p99_s", "P99"}, {"e2e_mean_s", "mean end to end, ms"},
		{"e2e_p99_s", "P99"}, {"throughput_tok_s", "tok/s"}}
	cells, errors := map[string]string{}, map[string]string{}
	var stages []string
	for _, f := range figures {
		if f.Metric == columns[0].metric {
			stages = append(stages, f.Stage)
		}
		if strings.HasSuffix(f.Metric, "_s") && f.Metric != "throughput_tok_s" {
			f.Measured *= 1e3
		}
		errors[f.Stage+f.Metric] = fmt.Sprintf("%+.1f %%", 100*f.Error)
		cells[f.Stage+f.Metric] = fmt.Sprintf("%.4g, %+.1f %%", f.Measured, 100*f.Error)
	}
	table, line := "| requests |", "\n|-|"
	for _, c := range columns {
		table, line = table+" "+c.name+" |", line+"-:|"
	}
	table += line + "\n"
	for _, stage := range stages {
		table += "| " + stage + " |"
		for _, c := range columns {
			table += " " + cells[stage+c.metric] + " |"
		}
		table += "\n"
	}
	testkit.Block(t, evidencePage, "record", table)
	inReadme(t, fmt.Sprintf("| vLLM 0.15.1, Llama-2-7B, H100: a record | %s | %s |",
		errors["allttft_mean_s"], errors["alltpot_mean_s"]))
}

// Figures of the page of evidence are in blocks that tests write: its sentences have no percentage,
// no decimal and no number with a unit, because nothing would recompute them.
func TestEvidencePageHasFiguresInBlocksAlone(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", evidencePage))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 155 {
		t.Errorf("%s has %d lines, more than 155", evidencePage, n)
	}
	blocks := regexp.MustCompile(`(?s)<!-- ([a-z]+) -->.*?<!-- /[a-z]+ -->`)
	named := regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)|" +
		"(vLLM|SGLang) [0-9.]+|arXiv [0-9.]+")
	figure := regexp.MustCompile(`\b[0-9]+(\.[0-9]+| ?%| ?(percent|ms|us|s|of)\b)`)
	prose := named.ReplaceAllString(blocks.ReplaceAllString(string(text), ""), "")
	for _, found := range figure.FindAllStringIndex(prose, -1) {
		t.Errorf("%s: a sentence has a figure: …%q…", evidencePage,
			prose[max(0, found[0]-40):min(len(prose), found[1]+20)])
	}
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

// span is the least and the largest of relative errors.
type span struct {
	least, most float64
	some        bool
}

func (s *span) add(x float64) {
	if !s.some {
		s.least, s.most, s.some = x, x, true
	}
	s.least, s.most = math.Min(s.least, x), math.Max(s.most, x)
}

func (s span) String() string {
	if !s.some {
		return "-"
	}
	return fmt.Sprintf("%+.1f to %+.1f %%", 100*s.least, 100*s.most)
}
