package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// claims --sensitivity measures with every tuned parameter, and writes its part
// of the README.
func TestClaimsSensitivity(t *testing.T) {
	if testing.Short() {
		t.Skip("measures every claim 27 times")
	}
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
		sum, err := pretend(ctx, p, sink)
		sum.PhaseS = map[string]float64{"prefill_attention": 200}
		if sum.TTFT.Mean = 1; p.System.Prefill == "chunked" {
			sum.TTFT.Mean = p.Workload.OutputScale / 1.85 // outputs make chunks wait
		}
		return sum, err
	}
	t.Chdir(t.TempDir())
	const readme = "<!-- sensitivity -->\n<!-- /sensitivity -->\n<!-- claims -->\nkept\n<!-- " +
		"/claims -->\n"
	writeFile(t, "README.md", readme)
	status, out, errs := runHere(t.Context(), runner, "claims", "--sensitivity", "--readme",
		"README.md",
		"--only", "ss-fig16a", "--only", "ss-fig16b-chunked", "--only", "ss-fig4-h2d-memcpy")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	text, err := os.ReadFile("README.md")
	if err != nil || !strings.HasSuffix(string(text), "<!-- claims -->\nkept\n<!-- /claims -->\n") {
		t.Errorf("README is %q (%v)", text, err)
	}
	for _, f := range papers.TunedParameters() {
		if !strings.Contains(string(text), "\n| "+f.Name+" | ") {
			t.Errorf("%s is not measured", f.Name)
		}
	}
	for _, want := range []string{"| output_scale | 8 for llama3-8b, 1.85 for lwm-7b | 1 |",
		"| load.memcpy_call | 6.3 us | 1 |", "| host.step | 2.5 ms | 0 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for _, want := range []string{"ss-fig4-h2d-memcpy", "-50 % │    +100 %"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q printed:\n%s", want, out)
		}
	}
}

// MInference's claims are measured within seconds, on prices alone.
func TestMInferenceClaims(t *testing.T) {
	status, out, errs := invoke(t, nil, "claims", "--paper", "minference", "--json")
	var outcomes []papers.Outcome
	if err := json.Unmarshal([]byte(out), &outcomes); status != 0 || errs != "" || err != nil {
		t.Fatalf("status %d, stderr %q, %v", status, errs, err)
	}
	if len(outcomes) != 11 {
		t.Errorf("%d numbers, want 11", len(outcomes))
	}
	for _, v := range outcomes {
		if v.Ours == nil || v.Verdict != papers.Pass {
			t.Errorf("%+v", v)
		}
	}
	// Seconds of the published runs at 50K to 1M tokens, within 10 %.
	text, err := os.ReadFile(filepath.Join(paperFolder, "results", "mi-fig1b", "table.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	near := 0
	for _, row := range rows[1:] {
		tokens, _ := strconv.Atoi(row[3])
		ours, err1 := strconv.ParseFloat(row[4], 64)
		paper, err2 := strconv.ParseFloat(row[7], 64)
		if err := cmp.Or(err1, err2); err != nil {
			t.Fatal(err)
		}
		if row[0] == "InfLLM" || row[1] != "1" || tokens < 50_000 {
			continue
		}
		if near++; math.Abs(ours/paper-1) > 0.1 {
			t.Errorf("%s at %d tokens: %g s, published %g", row[0], tokens, ours, paper)
		}
	}
	if near != 15 {
		t.Errorf("%d rows compared, want three systems at five lengths", near)
	}
}

func TestClaimsErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--paper sparserve", `did you mean "sparseserve"?`},
		{"--json --sensitivity", "--sensitivity prints a table"},
		{"--null --swapped", "--null and --swapped: use one of them"},
		{"--null --keep a.csv", "leave out --null"},
		{"--search --keep a.csv", "leave out --search"},
		{"--built-in --set workload.rate=1", "--built-in and --set"},
		{"--workers=-1", "must be at least 1"},
		{"--only ss-fig16", `did you mean "ss-fig16a"?`},
		{"--paper psa --only ss-fig16a", `no claim "ss-fig16a"`},
		{"--paper minference --readme nowhere.md", "nowhere.md"},
		{"--only ss-fig1-up --readme nowhere.md", "nowhere.md"}, // nothing can run here
		{"--only ss-fig1-up --sensitivity --readme nowhere.md", "nowhere.md"},
	} {
		if status, _, errs := invoke(t, nil,
			append([]string{"claims"}, strings.Fields(c.args)...)...); status != 1 ||
			!strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("claims %s: status %d, stderr %q", c.args, status, errs)
		}
	}
}

func TestWriteBlock(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "before\n<!-- claims -->\nold\n<!-- /claims -->\nafter\n"
	writeFile(t, "a.md", text)
	for range 2 { // the second time changes nothing
		if err := writeBlock("a.md", "claims", "new\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("a.md")
		if want := strings.Replace(text, "old", "new", 1); string(got) != want || err != nil {
			t.Errorf("wrote %q (%v), want %q", got, err, want)
		}
	}
	writeFile(t, "b.md", "<!-- claims -->\nold\n")
	if err := writeBlock("b.md", "claims", "new\n"); err == nil ||
		!strings.Contains(err.Error(), "b.md: no lines") {
		t.Errorf("no closing line: error is %v", err)
	}
	if got, _ := os.ReadFile("b.md"); string(got) != "<!-- claims -->\nold\n" {
		t.Errorf("a file without the lines became %q", got)
	}
}

// figures --paper runs what it needs, once.
func TestPaperFigures(t *testing.T) {
	status, out, errs := invoke(t, pretend, "figures", "--paper", "--only", "fig04", "--only",
		"fig16a", "--only", "fig16b")
	if want := "out/paper/fig04.png\nout/paper/fig16.png\n"; status != 0 || out != want {
		t.Errorf("status %d, stderr %q, stdout %q", status, errs, out)
	}
	before, err := os.ReadFile("out/paper/fig16.csv")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, errs := runHere(t.Context(), nil, "figures", "--paper", "--redraw"); status != 0 ||
		errs != "" {
		t.Errorf("--redraw: status %d, stderr %q", status, errs)
	}
	if after, err := os.ReadFile("out/paper/fig16.csv"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("drawn anew, Fig. 16 differs (%v)", err)
	}
	// Results of another version of the model are drawn too, and said to be.
	writeFile(t, "out/paper/results/fig16a/version.json", `{"format":2,"program":"older"}`)
	if err := os.Remove("out/paper/results/fig16b/version.json"); err != nil {
		t.Fatal(err)
	}
	want := "note: out/paper/results/fig16a: results of another version of the model (\"older\", " +
		"this is \"test\")\n" +
		"note: out/paper/results/fig16b: nothing says which version of the model made this\n"
	if status, _, errs := runHere(t.Context(), nil, "figures", "--paper", "--redraw"); status != 0 ||
		errs != want {
		t.Errorf("status %d, stderr %q, want %q", status, errs, want)
	}
	for _, c := range []struct{ args, want string }{
		{"--paper out/default", "leave out DIR"},
		{"--only fig04", "go with --paper"},
		{"--paper --only fig4", `did you mean "fig04"?`},
		{"--paper --redraw --out elsewhere", "no results of a figure of the paper"},
	} {
		if status, _, errs := runHere(t.Context(), pretend,
			append([]string{"figures"}, strings.Fields(c.args)...)...); status != 1 ||
			!strings.Contains(errs, c.want) {
			t.Errorf("figures %s: status %d, stderr %q", c.args, status, errs)
		}
	}
}

// Every experiment of the papers, and every figure, is a name that --only draws by.
func TestOnlyTakesEveryName(t *testing.T) {
	for _, name := range slices.Concat(papers.PaperExperiments(), papers.FigureNames()) {
		needed, err := experimentsOf([]string{name})
		if err != nil {
			t.Errorf("--only %s: %v", name, err)
		}
		for _, n := range needed {
			if !slices.Contains(papers.PaperExperiments(), n) {
				t.Errorf("--only %s needs %s, which is no experiment", name, n)
			}
		}
	}
}
