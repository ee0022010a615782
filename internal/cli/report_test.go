package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// reportedRun is a small configuration whose runs take milliseconds.
const reportedRun = `model = "llama3-8b"
gpu = "a100-40gb"
seed = [1, 2, 3]

[workload]
trace = "synthetic"
prompt_lengths = "uniform(2000, 6000)"
output_lengths = "fixed(20)"
requests = 8
rate = [0.5, 1]

[system]
preset = ["vllm", "vllm-so"]

[slo]
tbt_s = 0.5
delay_s = 2.0

[output]
steps = true
`

// reported are folders of every kind that report accepts, made by the commands themselves.
var reported = []struct {
	name   string
	charts int
	args   []string
}{
	{"run", 18, []string{"simulate", "run.toml", "--set", "workload.rate=1", "--set", "seed=1"}},
	{"sweep", 9, []string{"simulate", "sweep.toml"}},
	{"plan", 1, []string{"goodput", "plan.toml"}},
	{"whatif", 3, []string{"whatif", "plan.toml", "--metric", "ttft_mean", "--set", "workload.rate=1",
		"--vary", "link=0.5..2", "--vary", "budget=1024,4096",
		"--heat", "link,hbm", "--steps", "2", "--threshold", "dram"}},
	{"comparison", 2, []string{"compare", measuredRun, "--set", "model=llama2-7b", "--set",
		"gpu=h100-80gb", "--set", "system.max_requests=128"}},
	{"validation", 6, []string{"validate", "validate-tiny.toml", "--live=reference", "--set",
		"workload.requests=2", "--split-every", "2"}},
	{"calibration", 3, nil},
	{"purchase", 4, nil},
}

// makeReports carries the commands out here and returns the reports by name.
func makeReports(t *testing.T) map[string]string {
	t.Helper()
	kept, err := filepath.Abs(filepath.Join("..", "answers", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	experiment, err := filepath.Abs(filepath.Join("..", "..", "experiments"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"validate-tiny.toml", "testdata/tiny/config.json"} {
		text, err := os.ReadFile(filepath.Join(experiment, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, string(text))
	}
	writeFile(t, "run.toml", reportedRun)
	writeFile(t, "plan.toml", strings.Replace(reportedRun, "rate = [0.5, 1]", "", 1)+
		"\n[goodput]\nstart = 1\nwidth = 0.5\ncoarse = true\n")
	writeFile(t, "sweep.toml", strings.Replace(reportedRun, "steps = true", "", 1)+
		"\n[[axis]]\ngrid.card.link_h2d = [10, 25.1]\n")
	for _, name := range []string{"calibration", "purchase"} {
		if err := os.CopyFS(name, os.DirFS(filepath.Join(kept, name))); err != nil {
			t.Fatal(err)
		}
	}
	kernels, err := os.ReadFile(filepath.Join(kept, "calibration-kernels.toml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "calibration-kernels.toml", string(kernels))
	runner := run.NewSimulator().Run
	reports := map[string]string{}
	for _, r := range reported {
		if r.args != nil {
			if status, _, stderr := runHere(t.Context(), runner,
				append(r.args, "--out", r.name)...); status != exitOK {
				t.Fatalf("%v: status %d: %s", r.args, status, stderr)
			}
		}
		status, out, stderr := runHere(t.Context(), nil, "report", r.name)
		path := filepath.Join(r.name, "report.html")
		if status != exitOK || out != path+"\n" || stderr != "" {
			t.Fatalf("report %s: status %d, stdout %q, stderr %q", r.name, status, out, stderr)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		reports[r.name] = string(text)
	}
	return reports
}

// fetched is what a browser would fetch from elsewhere.
var fetched = regexp.MustCompile(`(?i)<(?:script|img|iframe|link|source)[^>]+(?:src|href)="?([^">]*)|@import|url\(`)

// The report of every kind of folder is one file that names no other, has what it is about, and
// has the same bytes when it is made again.
func TestReports(t *testing.T) {
	if testing.Short() {
		t.Skip("makes runs of every command")
	}
	reports := makeReports(t)
	for _, r := range reported {
		text := reports[r.name]
		page := text[:strings.Index(text, `<script type="application/json"`)] // less the library
		for _, m := range fetched.FindAllStringSubmatch(page, -1) {
			if m[1] != "data:," {
				t.Errorf("%s fetches %q", r.name, m[0])
			}
		}
		if n := strings.Count(page, `class="chart"`); n != r.charts {
			t.Errorf("%s has %d charts, want %d", r.name, n, r.charts)
		}
		for _, want := range map[string][]string{
			"run": {"<h2>Results</h2>", "NVIDIA A100-SXM4-40GB with engine", "published",
				"SLO: P99 TBT"},
			"sweep": {"link_h2d", "<td>card.link_h2d</td>", "config.toml of the first run"},
			"plan":  {"<h2>Candidates</h2>", "config.toml"},
			"whatif": {"<h2>Answers</h2>", "the host memory that the load needs",
				"selection.budget_tokens"},
			"comparison":  {"TTFT P99, s", "NVIDIA H100", "on extrapolation and sampling</summary>"},
			"validation":  {"sparseserve-psa-4-s1", "below saturation", "config.toml"},
			"calibration": {"psa_decode is flagged", "Quality of the fits", "driver"},
			"purchase":    {"vllm serve meta-llama", "nebius", "<td>weakest</td>", "<td>price range</td>"},
		}[r.name] {
			if !strings.Contains(page, want) {
				t.Errorf("%s says nothing of %q", r.name, want)
			}
		}
		first := "Read with care"
		if r.name == "comparison" { // of which there are only notes
			first = `class="notes"`
		}
		if i, j := strings.Index(page, first),
			strings.Index(page, "<figure>"); i < 0 || i > j {
			t.Errorf("%s: warnings at %d, the first chart at %d", r.name, i, j)
		}
		status, _, stderr := runHere(t.Context(), nil, "report", r.name, "--out", "again.html")
		again, err := os.ReadFile("again.html")
		if status != exitOK || err != nil || !bytes.Equal(again, []byte(text)) {
			t.Errorf("%s made again differs: status %d, %s, %v", r.name, status, stderr, err)
		}
	}
	t.Run("Browser", func(t *testing.T) { openInBrowser(t, reports) })
}

// A folder without results, or with damaged ones, is one line and no file.
func TestReportOfBrokenFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, c := range []struct{ file, text, want string }{
		{"", "", "no finished results of simulate, goodput, plan, whatif, compare, validate, " +
			"calibrate or trace describe"},
		{"summary.json", "[{", "summary.json:1: damaged, no valid JSON at column 2"},
		{"summary.json", "[]", "summary.json: no run"},
		{"summary.json", `[{"name": 3}]`, "summary.json:1: name: want a string, got number"},
		{"goodput.json", "{}", "goodput.json:1: want a list, got object"},
		{"goodput.json", "[]", "goodput.json: no candidate"},
		{"purchase.json", "{}", "purchase.json: no candidate"},
		{"purchase.json", "[]", "purchase.json:1: want an object, got array"},
		{"whatif.json", `{"cases": []}`, "whatif.json: no case"},
		{"compare.json", "[]", "no summary.json, so no comparison of this version was finished here"},
		{"validate.json", "[]", "no runs.json, so no validation was finished here"},
		{"fits.csv", "card\n", "fits.csv: no row"},
		{"fits.csv", "card,model\na,b\n", "no column"},
	} {
		dir := fmt.Sprint(i)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if c.file != "" {
			writeFile(t, filepath.Join(dir, c.file), c.text)
		}
		status, out, stderr := runHere(t.Context(), nil, "report", dir)
		if status != exitFailed || out != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, c.want) {
			t.Errorf("%s %q: status %d, stdout %q, stderr %q, want %q", c.file, c.text, status, out,
				stderr, c.want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 1 || len(left) == 1 && left[0].Name() != c.file {
			t.Errorf("%s %q: left %v", c.file, c.text, left)
		}
	}
	writeFile(t, "file", "")
	for _, args := range [][]string{{"report", "nowhere"}, {"report", "file"}, {"report"},
		{"report", "0", "--out", "."}, {"report", "0", "--out", "no/where.html"}} {
		if status, out, stderr := runHere(t.Context(), nil, args...); status != exitFailed || out != "" ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, status, out, stderr)
		}
	}
}

// Folders without results, without a run that served, or without the requests of their runs: report
// names the kind of folder, gives advice, and draws no empty picture.
func TestFoldersWithoutRequests(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", sweepFile)
	nothing := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		sum, err := pretend(ctx, p, sink)
		sum.Completed, sum.Warnings = 0, []warn.Warning{{Kind: warn.NoneFinished,
			Text: "no request finished"}}
		return sum, err
	}
	for out, runner := range map[string]run.Runner{"served": pretend, "none": nothing,
		"lost": pretend} {
		runHere(t.Context(), runner, "simulate", "s.toml", "--out", out)
	}
	if err := os.RemoveAll("lost/runs"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"empty", "whatif"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, "whatif/validate.json", "[]")
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"report served", exitOK, ""}, {"report served --format png", exitOK, ""},
		{"report lost", exitOK, ""}, {"report lost --format png", exitOK, ""},
		{"report none", exitOK, ""},
		{"report none --format png", exitFailed, "sparseserve: none: there is nothing to draw"},
		{"report empty --format png", exitFailed, "sparseserve: empty: no finished results of simulate"},
		{"report empty", exitFailed, "sparseserve: empty: no finished results of simulate"},
		{"report gone --format png", exitFailed,
			"sparseserve: gone: no such folder; give the result folder"},
		{"report gone", exitFailed, "sparseserve: gone: no such folder; give the result folder"},
		{"report whatif --format png", exitFailed, "sparseserve: whatif: no runs.json"},
	} {
		status, _, errs := runHere(t.Context(), nil, strings.Fields(c.args)...)
		if status != c.status || !strings.HasPrefix(errs, c.want) || c.want == "" && errs != "" {
			t.Errorf("%s: status %d, %q, want %q", c.args, status, errs, c.want)
		}
	}
	if _, out, _ := runHere(t.Context(), nil, "report", "lost", "--format", "text"); !strings.Contains(
		out, "8 of 8 runs have no requests.csv") {
		t.Errorf("no warning in\n%s", out)
	}
	for _, dir := range []string{"empty", "whatif"} {
		if drawn, _ := filepath.Glob(dir + "/*.png"); len(drawn) > 0 {
			t.Errorf("%s: drawn %q", dir, drawn)
		}
	}
}
