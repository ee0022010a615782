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
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// The sensitivity of claims is measured with every tuned parameter.
func TestClaimsSensitivity(t *testing.T) {
	if testing.Short() {
		t.Skip("measures every claim 27 times")
	}
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		sum, err := pretend(ctx, p, sink)
		sum.PhaseS = map[string]float64{"prefill_attention": 200}
		if sum.TTFT.Mean = 1; p.System.Prefill.Split == "chunked" {
			sum.TTFT.Mean = p.Workload.OutputScale / 1.85 // outputs make chunks wait
		}
		return sum, err
	}
	t.Chdir(t.TempDir())
	status, text, errs := runHere(t.Context(), runner, "paper", "claims", "--numbers", "sensitivity",
		"--format", "md", "ss-fig16a", "ss-fig16b-chunked", "ss-fig4-h2d-memcpy")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, f := range papers.TunedParameters() {
		if !strings.Contains(text, "\n| "+f.Name+" | ") {
			t.Errorf("%s is not measured", f.Name)
		}
	}
	for _, want := range []string{"| output_scale | 8 for llama3-8b, 1.85 for lwm-7b | 1 |",
		"| load.memcpy_call | 6.3 us | 1 |", "| host.step | 2.5 ms | 0 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// MInference's claims are measured within seconds, on prices alone.
func TestMInferenceClaims(t *testing.T) {
	status, out, errs := invoke(t, nil, "paper", "claims", "minference", "--json")
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
		{"sparserve", `did you mean "sparseserve"?`},
		{"--json --numbers sensitivity", "--numbers sensitivity prints a table"},
		{"--numbers nul", "--numbers must be one of"},
		{"--numbers null --keep a.csv", "leave out --numbers null"},
		{"--numbers kept --set workload.rate=1", "leave out --numbers kept"},
		{"--workers=-1", "--workers: expected"},
		{"ss-fig16", `did you mean "ss-fig16a"?`},
	} {
		if status, _, errs := invoke(t, nil,
			append([]string{"paper", "claims"}, strings.Fields(c.args)...)...); status != 1 ||
			!strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("paper claims %s: status %d, stderr %q", c.args, status, errs)
		}
	}
}

// Figures of the papers run what they need, once.
func TestPaperFigures(t *testing.T) {
	names := []string{"paper", "figures", "fig04", "fig16a", "fig16b"}
	status, out, errs := invoke(t, pretend, names...)
	want := "out/paper/fig04.png\nout/paper/fig16.png\nout/paper/pictures.csv\n"
	if status != 0 || out != want {
		t.Errorf("status %d, stderr %q, stdout %q", status, errs, out)
	}
	before, err := os.ReadFile("out/paper/pictures.csv")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, errs := runHere(t.Context(), nil, names...); status != 0 || errs != "" {
		t.Errorf("drawn anew: status %d, stderr %q", status, errs)
	}
	if after, err := os.ReadFile("out/paper/pictures.csv"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("drawn anew, Fig. 16 differs (%v)", err)
	}
	if status, _, errs := runHere(t.Context(), nil, "paper", "figures", "fig4"); status != 1 ||
		!strings.Contains(errs, `did you mean "fig04"?`) {
		t.Errorf("status %d, stderr %q", status, errs)
	}
}

// Every experiment of the papers, and every figure, is a name that paper figures draws by.
func TestOnlyTakesEveryName(t *testing.T) {
	for _, name := range papers.Names() {
		needed, err := papers.Needed([]string{name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, n := range needed {
			if !slices.Contains(papers.PaperExperiments(), n) {
				t.Errorf("%s needs %s, which is no experiment", name, n)
			}
		}
	}
}
