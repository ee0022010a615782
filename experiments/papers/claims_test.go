package papers

import (
	"bufio"
	"fmt"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every number of the SparseServe paper and of PSA's is measured, and
// nothing is measured that no claim asks for.
func TestEveryClaimHasAMeasurement(t *testing.T) {
	claims, err := Claims("")
	if err != nil {
		t.Fatal(err)
	}
	left := measurements()
	ids := map[string]bool{}
	experiments := PaperExperiments()
	for _, c := range claims {
		if ids[c.ID] {
			t.Errorf("%s stands twice in claims.toml", c.ID)
		}
		ids[c.ID] = true
		if kinds := []string{"ratio", "share", "bandwidth", "points", "speedup",
			"seconds"}; !slices.Contains(kinds, c.Kind) || c.Where == "" || c.Text == "" {
			t.Errorf("%s: kind %q, where %q, text %q", c.ID, c.Kind, c.Where, c.Text)
		}
		for i, v := range c.numbers() {
			m, ok := left[measureKey{c.ID, i}]
			if !ok || v <= 0 {
				t.Errorf("%s: number %d of %s is %g, measured: %v", c.ID, i, c.Paper, v, ok)
			}
			for _, name := range m.from {
				if !slices.Contains(experiments, name) {
					t.Errorf("%s is measured on %s, which is no experiment", c.ID, name)
				}
			}
			delete(left, measureKey{c.ID, i})
		}
	}
	for key := range left {
		t.Errorf("%v is measured for no claim", key)
	}
	notes, err := claimNotes()
	if err != nil {
		t.Fatal(err)
	}
	for id := range notes {
		if !ids[id] {
			t.Errorf("a note on %q, which is no claim", id)
		}
	}
}

// The numbers of one claim are distinguished in words where its text lists them.
func TestClaimText(t *testing.T) {
	for _, c := range []struct {
		text   string
		values int
		want   string
	}{
		{"goodput over vLLM: LWM-7B, Llama3-8B", 2, "goodput over vLLM: Llama3-8B"},
		{"speedup at 100K, 1M tokens, one A100", 2, "speedup at 100K, 1M tokens, one A100"},
		{"throughput: up to, LWM-7B", 0, "throughput: up to, LWM-7B"},
	} {
		claim := Claim{Text: c.text, Values: make([]float64, c.values)}
		if got := claim.text(1); got != c.want {
			t.Errorf("%q: number 2 is %q, want %q", c.text, got, c.want)
		}
	}
}

// PSA's Fig. 6 runs only when asked for; what the sensitivity has to cover,
// SparseServe's goodput among it, does not take as long.
func TestApart(t *testing.T) {
	all, err := Claims("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if want := strings.HasPrefix(c.ID, "psa-fig6"); c.Apart() != want {
			t.Errorf("%s: apart is %v", c.ID, !want)
		}
	}
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		kind, bound string
		value, ours float64
		pass        bool
		deviation   float64
	}{
		{"ratio", "", 2, 2.39, true, 0.195},
		{"ratio", "", 2, 2.41, false, 0.205},
		{"ratio", "", 2, 1.59, false, -0.205},
		{"share", "", 0.5, 0.41, true, -0.18},
		{"points", "", 10, 12.9, true, 2.9},
		{"points", "", 10, 6.9, false, -3.1},
		{"ratio", below, 1.2, 0.3, true, -0.75},
		{"ratio", below, 1.2, 1.21, false, 0.01 / 1.2},
		{"bandwidth", above, 20, 60, true, 2},
		{"bandwidth", above, 20, 19.9, false, -0.005},
	} {
		v := Outcome{Kind: c.kind, Bound: c.bound, Value: c.value}
		v.settle(c.ours, c.ours, c.ours)
		if v.Pass != c.pass || math.Abs(*v.Deviation-c.deviation) > 1e-9 {
			t.Errorf("%s %s %g, ours %g: pass %v, deviation %g; want %v, %g", c.kind, c.bound, c.value,
				c.ours, v.Pass, *v.Deviation, c.pass, c.deviation)
		}
	}
}

// The jackknife's interval of a mean is Student's.
func TestIntervalOfAMean(t *testing.T) {
	dir := t.TempDir()
	writeResult(t, dir, "fig01", run.SummaryFile,
		`[{"seed":1,"throughput_tok_s":1},{"seed":2,"throughput_tok_s":2},{"seed":3,"throughput_tok_s":6}]`)
	m := measurement{from: []string{"fig01"}, measure: func(r *results) (float64, error) {
		return r.mean("fig01", func(*sweptRun) bool { return true }, tokenThroughput)
	}}
	ours, low, high, err := newResults(dir).estimate(m)
	half := 4.302652729911275 * math.Sqrt(7.0/3) // t(2) at 97.5 %, variance 7
	if err != nil || ours != 3 || math.Abs(low-3+half) > 1e-9 || math.Abs(high-3-half) > 1e-9 {
		t.Errorf("%g, %g to %g (%v), want 3, %g to %g", ours, low, high, err, 3-half, 3+half)
	}
}

// An "up to" claim is the largest ratio at one rate, among the rates that both
// systems ran at.
func TestLargestRatio(t *testing.T) {
	dir := t.TempDir()
	writeResult(t, dir, "fig10a", run.SummaryFile, `[
		{"system":"a","rate":0.1,"throughput_tok_s":10}, {"system":"b","rate":0.1,"throughput_tok_s":10},
		{"system":"a","rate":0.2,"throughput_tok_s":20}, {"system":"b","rate":0.2,"throughput_tok_s":8},
		{"system":"a","rate":0.3,"throughput_tok_s":30}, {"system":"b","rate":0.3,"throughput_tok_s":6},
		{"system":"a","rate":0.4,"throughput_tok_s":90}]`)
	r := newResults(dir)
	for limit, want := range map[float64]float64{0.1: 1, 0.25: 2.5, 9: 5} {
		if got, err := r.largestRatio("fig10a", system("a"), system("b"), tokenThroughput,
			limit); got != want || err != nil {
			t.Errorf("up to %g req/s: %g (%v), want %g", limit, got, err, want)
		}
	}
	if _, err := r.largestRatio("fig10a", system("a"), system("c"), tokenThroughput, 1); err == nil {
		t.Error("no error without a run to compare with")
	}
}

// A small, fast subset of the claims, with fixed seeds: our numbers stay what
// they were, and so does what passes.
func TestFastClaims(t *testing.T) {
	names := []string{"fig01", "fig04", "fig08", "fig14b", "fig16b"}
	studies := newStudies(t, run.NewSimulator().Run)
	studies.Sets = []string{"seeds=[1,2]", "workload.requests=24"}
	if _, err := studies.Do(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	all, err := Claims("sparseserve")
	if err != nil {
		t.Fatal(err)
	}
	fast := slices.DeleteFunc(all, func(c Claim) bool {
		return slices.ContainsFunc(ClaimExperiments([]Claim{c}),
			func(name string) bool { return !slices.Contains(names, name) })
	})
	outcomes, err := Judge(fast, studies.Dir)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "claims-fast.txt")
	if *testkit.Update {
		var text strings.Builder
		for _, v := range outcomes {
			fmt.Fprintf(&text, "%s %d %.6g %v\n", v.ID, v.Index, *v.Ours, v.Pass)
		}
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for _, v := range outcomes {
		var id string
		var index int
		var want float64
		var pass bool
		if !lines.Scan() {
			t.Fatalf("%s has no line for %s", golden, v.ID)
		}
		if _, err := fmt.Sscan(lines.Text(), &id, &index, &want, &pass); err != nil {
			t.Fatal(err)
		}
		if id != v.ID || index != v.Index || math.Abs(*v.Ours-want) > 0.02*math.Abs(want) ||
			v.Pass != pass {
			t.Errorf("%s %d: %g, pass %v; %s says %q", v.ID, v.Index, *v.Ours, v.Pass, golden, lines.Text())
		}
	}
	if lines.Scan() {
		t.Errorf("%s has a line too many: %s", golden, lines.Text())
	}
}

func TestJudgeErrors(t *testing.T) {
	claims := []Claim{{ID: "ss-fig15-drop", Paper: "sparseserve", Kind: "share", Value: 0.3}}
	dir := t.TempDir()
	if _, err := Judge(claims, dir); err == nil || !strings.Contains(err.Error(), "fig15") {
		t.Errorf("no results: error is %v", err)
	}
	writeResult(t, dir, "fig15", run.SummaryFile, `[{"seed":1`)
	if _, err := Judge(claims, dir); err == nil || !strings.Contains(err.Error(), run.SummaryFile) {
		t.Errorf("half a file: error is %v", err)
	}
	writeResult(t, dir, "fig15", run.SummaryFile, `[{"seed":1,"rate":0.3,"settings":{"system.batch_control":false}}]`)
	if _, err := Judge(claims, dir); err == nil ||
		!strings.Contains(err.Error(), "no run to measure on") {
		t.Errorf("a rate is missing: error is %v", err)
	}
	if _, err := Claims("sparserve"); err == nil || !strings.Contains(err.Error(), `did you mean "sparseserve"`) {
		t.Errorf("unknown paper: error is %v", err)
	}
	outcomes, err := Judge([]Claim{{ID: "mi-x", Paper: "minference", Value: 2}}, dir)
	if err != nil || outcomes[0].Measured() || outcomes[0].Pass ||
		!strings.Contains(outcomes[0].Note, "not yet measured") {
		t.Errorf("a claim that cannot be measured: %+v (%v)", outcomes, err)
	}
}

func writeResult(t *testing.T, dir, name, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
