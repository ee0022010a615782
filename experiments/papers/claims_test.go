package papers

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Every number of the papers is measured on an experiment that paper run runs, and no
// experiment is named that is none.
func TestEveryClaimHasAMeasurement(t *testing.T) {
	claims, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	numbers := 0
	for _, c := range claims {
		for i, v := range c.Values {
			numbers++
			if len(c.measured(i).From) == 0 || v <= 0 {
				t.Errorf("%s: number %d is %g, measured on %q", c.ID, i, v, c.measured(i).From)
			}
		}
	}
	if len(claims) != 42 || numbers != 62 {
		t.Errorf("%d claims with %d numbers, want 42 with 62", len(claims), numbers)
	}
	all := PaperExperiments()
	for _, name := range ClaimExperiments(claims) {
		if !slices.Contains(all, name) {
			t.Errorf("a claim is measured on %s, which no paper's figure shows", name)
		}
	}
}

// Every claim of claims.toml is whole, and names what the evaluator knows.
func TestClaimsAreWhole(t *testing.T) {
	kinds := []string{"ratio", "share", "bandwidth", "points", "speedup", "seconds"}
	several := []string{"largest", "smallest", "mean"}
	for _, c := range readClaims() {
		n := len(c.Values)
		if c.Paper == "" || c.Where == "" || c.Text == "" || n == 0 || !slices.Contains(kinds, c.Kind) ||
			len(c.Class) != 0 && len(c.Class) != n || len(c.Numbers) != n && (len(c.Numbers) > 0 || n > 1) {
			t.Errorf("%+v", c)
		}
		for i := range n {
			m := c.measured(i)
			_, metric := figuresBook().Metric[m.Metric]
			_, reduced := reductions[m.Reduce]
			if !metric || !reduced || m.Over == nil && m.Under == nil ||
				m.Until != nil && len(m.Until) != len(m.From) ||
				!slices.Contains([]string{"", below, above}, m.Bound) ||
				slices.Contains(several, m.Reduce) != (len(m.Each) > 0) {
				t.Errorf("%s: number %d: %+v", c.ID, i, m)
			}
		}
	}
}

// The metric load_share divides by the time of every phase.
func TestLoadShareHasAllPhases(t *testing.T) {
	of := strings.Fields(figuresBook().Metric["load_share"].Over)
	for _, p := range Phases() {
		if !slices.Contains(of, "phase_s."+p.Key) {
			t.Errorf("no %s", p.Key)
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

// PSA's Fig. 6 runs only when asked for; the runs of the sensitivity, SparseServe's goodput
// included, does not take as long.
func TestApart(t *testing.T) {
	all, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if want := strings.HasPrefix(c.ID, "psa-fig6"); c.Apart() != want {
			t.Errorf("%s: apart is %v", c.ID, !want)
		}
	}
}

// A number passes where its whole interval is in the band of 20 %, fails where none of it is, and
// is undecided where the interval straddles an edge of the band.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		kind, bound            string
		value, ours, low, high float64
		want                   Verdict
		deviation              float64
	}{
		{"ratio", "", 2, 2.39, 2.39, 2.39, Pass, 0.195},
		{"ratio", "", 2, 2.41, 2.41, 2.41, Fail, 0.205},
		{"ratio", "", 2, 1.59, 1.59, 1.59, Fail, -0.205},
		{"ratio", "", 2, 2, 1.7, 2.3, Pass, 0},
		{"ratio", "", 2, 2, 1.5, 2.5, Undecided, 0}, // wider than the band
		{"ratio", "", 2, 2.3, 2.1, 2.5, Undecided, 0.15},
		{"ratio", "", 2, 2.5, 2.3, 2.7, Undecided, 0.25},
		{"ratio", "", 2, 2.7, 2.5, 2.9, Fail, 0.35},
		{"share", "", 0.5, 0.41, 0.41, 0.41, Pass, -0.18},
		{"points", "", 0.31, 0, 0, 0, Fail, -1}, // a tolerance of 3 points would take this
		{"points", "", 10, 11.9, 11.9, 11.9, Pass, 0.19},
		{"ratio", below, 1.2, 0.3, 0.2, 0.4, Pass, -0.75},
		{"ratio", below, 1.2, 1.1, 0.9, 1.3, Undecided, -0.1 / 1.2},
		{"ratio", below, 1.2, 1.5, 1.3, 1.7, Fail, 0.25},
		{"bandwidth", above, 20, 60, 60, 60, Pass, 2},
		{"bandwidth", above, 20, 19, 18, 21, Undecided, -0.05},
		{"bandwidth", above, 20, 18, 17, 19, Fail, -0.1},
	} {
		v := Outcome{Kind: c.kind, Bound: c.bound, Value: c.value}
		v.settle(c.ours, c.low, c.high)
		if v.Verdict != c.want || math.Abs(*v.Deviation-c.deviation) > 1e-9 {
			t.Errorf("%s %s %g, ours %g (%g to %g): %s, deviation %g; want %s, %g", c.kind, c.bound,
				c.value, c.ours, c.low, c.high, v.Verdict, *v.Deviation, c.want, c.deviation)
		}
	}
}

// Every number has a class, and 34 of the 62 are independent evidence.
func TestClasses(t *testing.T) {
	claims, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]map[Class]int{}
	for _, c := range claims {
		for i := range c.Values {
			if numbers[c.Paper] == nil {
				numbers[c.Paper] = map[Class]int{}
			}
			numbers[c.Paper][c.class(i)]++
		}
	}
	want := map[string]map[Class]int{
		"sparseserve": {Independent: 25, Anchor: 7, Construction: 5, Product: 2},
		"psa":         {Independent: 7, Anchor: 1, ChosenAfter: 4},
		"minference":  {Independent: 2, Anchor: 9},
	}
	if !reflect.DeepEqual(numbers, want) {
		t.Errorf("classes %v, want %v", numbers, want)
	}
}

// Without an effect of any mechanism ratios are 1, which agrees with every step of Llama3-8B's
// goodput, and gains and shares are 0, which agree with nothing.
func TestNull(t *testing.T) {
	claims, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	studies := newStudies(t, run.NewSimulator().Run)
	if err := studies.Do(t.Context(), NullExperiments(claims)...); err != nil {
		t.Fatal(err)
	}
	outcomes, err := Null(claims, studies.Dir)
	if err != nil {
		t.Fatal(err)
	}
	passes := map[string]int{}
	for _, v := range outcomes {
		if v.Verdict == Pass {
			passes[v.ID]++
		}
		if ours := *v.Ours; (v.Kind == "ratio" || v.Kind == "speedup") && ours != 1 ||
			(v.Kind == "points" || v.Kind == "share") && ours != 0 {
			t.Errorf("%s, a %s, is %g", v.ID, v.Kind, ours)
		}
	}
	want := map[string]int{"ss-fig4-h2d-memcpy": 1, "ss-fig4-d2h-memcpy": 1, "ss-fig12-tbt": 1,
		"ss-fig13-lwm": 2, "ss-fig13-llama": 5, "ss-fig14b": 1, "ss-fig16b-layer": 1,
		"psa-fig6-strict-sparse": 1}
	if !maps.Equal(passes, want) {
		t.Errorf("passes %v, want %v", passes, want)
	}
}

// The jackknife's interval of a mean is Student's.
func TestIntervalOfAMean(t *testing.T) {
	dir := t.TempDir()
	writeResult(t, dir, "fig01", run.SummaryFile,
		`[{"seed":1,"throughput_tok_s":1},{"seed":2,"throughput_tok_s":2},{"seed":3,"throughput_tok_s":6}]`)
	m := measurement{source: source{From: []string{"fig01"}, Over: filter{}},
		Metric: "throughput_tok_s"}
	ours, low, high, err := newResults(dir).estimate(&m)
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
	m := measurement{source: source{From: []string{"fig10a"}, Over: filter{"system": "a"},
		Under: filter{"system": "b"}}, Metric: "throughput_tok_s", Each: []string{"rate"},
		Reduce: "largest"}
	for limit, want := range map[float64]float64{0.1: 1, 0.25: 2.5, 9: 5} {
		m.Until = []float64{limit}
		if got, err := r.measure(&m); got != want || err != nil {
			t.Errorf("up to %g req/s: %g (%v), want %g", limit, got, err, want)
		}
	}
	m.Until = nil
	m.Under = filter{"system": "c"}
	if _, err := r.measure(&m); err == nil || err.Error() != "[fig10a]: no row with system = c" {
		t.Errorf("nothing to compare with: error is %v", err)
	}
	m.Under = filter{"system": "b", "rate": []any{0.1, 0.2}}
	if got, err := r.measure(&m); got != 2.5 || err != nil {
		t.Errorf("at two rates: %g (%v), want 2.5", got, err)
	}
}

// The numbers that the program comes with equal the simulator's: recomputed where that takes
// seconds.
func TestKeptNumbers(t *testing.T) {
	names := []string{"fig04", "fig08", "fig14b", "fig16b", "mi-fig1b", "mi-fig10"}
	if !testing.Short() {
		names = append(names, "fig01", "fig14a")
	}
	studies := newStudies(t, run.NewSimulator().Run)
	if err := studies.Do(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	all, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	some := slices.DeleteFunc(all, func(c Claim) bool {
		return slices.ContainsFunc(ClaimExperiments([]Claim{c}),
			func(name string) bool { return !slices.Contains(names, name) })
	})
	now, err := Judge(some, studies.Dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := Kept(some, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range now {
		k := kept[i]
		if !k.Measured() || v.Verdict != k.Verdict {
			t.Errorf("%s %d: %s, kept %s", v.ID, v.Index, v.Verdict, k.Verdict)
			continue
		}
		for _, n := range [][2]float64{{*v.Ours, *k.Ours}, {*v.Low, *k.Low}, {*v.High, *k.High}} {
			if math.Abs(n[0]-n[1]) > keptWithin*math.Abs(n[1]) {
				t.Errorf("%s %d: %g (%g to %g), kept %g (%g to %g)", v.ID, v.Index, *v.Ours, *v.Low,
					*v.High, *k.Ours, *k.Low, *k.High)
				break
			}
		}
	}
}

// keptWithin covers that a number is kept as it was printed, with three digits.
const keptWithin = 0.005

// Keep writes the given numbers below the file's other numbers, and below the same numbers with
// other changes.
func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.csv")
	if err := os.WriteFile(path, []byte("claim,index,changed,ours,low,high\nss-fig14b,1,,9,8,10\n"+
		"mi-8gpu,0,,33,32,34\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	v := Outcome{ID: "ss-fig14b", Index: 1, Value: 1.28}
	for i, changed := range []string{"", "a=2"} {
		v.settle(1.25+float64(i), 1.2, 1.3)
		if err := Keep(path, changed, []Outcome{v, {ID: "ss-fig15-drop"}}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	want := "claim,index,changed,ours,low,high\nss-fig14b,1,,1.25,1.2,1.3\nmi-8gpu,0,,33,32,34\n" +
		"ss-fig14b,1,a=2,2.25,1.2,1.3\n"
	if err != nil || string(text) != want {
		t.Errorf("%q (%v), want %q", text, err, want)
	}
}

func TestJudgeErrors(t *testing.T) {
	claims, err := Claims("ss-fig15-drop")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Judge(claims, dir); err == nil || !strings.Contains(err.Error(), "fig15") {
		t.Errorf("no results: error is %v", err)
	}
	writeResult(t, dir, "fig15", run.SummaryFile, `[{"seed":1`)
	if _, err := Judge(claims, dir); err == nil || !strings.Contains(err.Error(), run.SummaryFile) {
		t.Errorf("half a file: error is %v", err)
	}
	writeResult(t, dir, "fig15", run.SummaryFile, `[{"seed":1,"rate":0.3,"settings":{"offload.batch_control":false}}]`)
	if _, err := Judge(claims, dir); err == nil ||
		!strings.Contains(err.Error(), "claims.toml: ss-fig15-drop: [fig15]: no row with "+
			"offload.batch_control = false, rate = 0.25") {
		t.Errorf("a rate is missing: error is %v", err)
	}
	if _, err := Claims("sparserve"); err == nil || !strings.Contains(err.Error(), `did you mean "sparseserve"`) {
		t.Errorf("unknown paper: error is %v", err)
	}
	outcomes, err := Judge([]Claim{{ID: "mi-x", Paper: "minference", Values: []float64{2}}}, dir)
	if err != nil || outcomes[0].Measured() || outcomes[0].Verdict != "" ||
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

// Each score in prefill_accuracy.toml belongs to a task.
func TestPrefillAccuracyIsWhole(t *testing.T) {
	a := PrefillAccuracy()
	for _, s := range a.Scores {
		if n := len(a.Tasks[s.Benchmark]); n == 0 || len(s.Values) != n {
			t.Errorf("%+v: want %d values", s, n)
		}
	}
}
