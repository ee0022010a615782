package answers

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// validated is a run with fixed figures; off is the error of mean TTFT.
func validated(name string, rate, off float64, saturated bool) validate.ValidatedRun {
	r := validate.ValidatedRun{Run: name, System: name, Model: "m", Rate: rate, Saturated: saturated}
	r.Live = metrics.Summary{TTFT: metrics.Stats{Mean: 2}, ThroughputTokS: 100, Steps: 1000}
	r.Simulated = metrics.Summary{TTFT: metrics.Stats{Mean: 2 * (1 + off)}, ThroughputTokS: 100}
	blocks, delay := 0.0, 0.0 // only one run loads and waits
	if name == "bad" {
		blocks, delay = 40, 0.1
	}
	for _, c := range []struct {
		metric          string
		live, simulated float64
	}{
		{"ttft_mean_s", 2, 2 * (1 + off)}, {"ttft_p99_s", 4, 4 * (1 + off)},
		{"tbt_mean_s", 0.03, 0.03 * (1 - off/2)}, {"tbt_p99_s", 0.06, 0.06},
		{"throughput_tok_s", 100, 100}, {"queue_delay_mean_s", delay, delay + off},
		{"blocks_loaded_per_step", blocks, blocks * (1 + off)}, {"hit_ratio", 0.98, 0.97},
		{"steps", 1000, 1003}, {"step_decode_mean_s", 0.02, 0.02 * (1 + 2*off)},
	} {
		r.Comparisons = append(r.Comparisons, comparedAs(name, c.metric, c.live, c.simulated))
	}
	return r
}

func comparedAs(run, metric string, live, simulated float64) validate.Comparison {
	c := validate.Comparison{Run: run, Metric: metric, Live: live, Simulated: simulated}
	if e := simulated/live - 1; live != 0 {
		c.Error = &e
	} else if simulated == 0 {
		c.Error = new(float64)
	}
	return c
}

// A mean TTFT may be off by 5 %: of three runs below saturation one is not, and the saturated run
// does not count.
func TestNumbersOfValidations(t *testing.T) {
	r := &validate.Report{Name: "v", Device: "a card", Runs: []validate.ValidatedRun{
		validated("good", 1, 0.01, false), validated("over", 2, 0.5, true),
		validated("bad", 1, -0.07, false), validated("slow", 1, 0, false),
	}}
	r.Runs[3].Live.TTFT.Mean = 1.96
	r.Runs[0].Simulated.Warnings = []warn.Warning{warn.New(warn.FewRequests, "few of them")}
	d := Validation(r)
	text := printed(t, d)
	expectIn(t, text, "v on a card: simulated over live less 1, in %.",
		"run TTFT TTFT TBT TBT output blocks loaded a step goals mean P99 mean P99",
		"bad -7.0 -7.0 +3.5 +0.0 +0.0 -7.0! missed", "good +1.0 +1.0 -0.5 +0.0 +0.0 - met",
		"slow +0.0 +0.0 +0.0 +0.0 +0.0 - met", "over +50.0! +50.0! -25.0! +0.0 +0.0 - saturated",
		"! beyond its goal",
		"bad -70.0 -1.0 +0.3 -14.0 missed", "good 0 live -1.0 +0.3 +2.0 met",
		"steps: how many decode step, mixed step: the model's time of the live run's own batches",
		"2 of 3 runs below saturation meet every goal, 80 % are to.",
		"TTFT mean 8 3 3 7.0", "TTFT P99 15 3 3 7.0", "TBT mean 8 3 3 3.5", "TBT P99 15 3 3 0.0",
		"output 8 3 3 0.0", "blocks loaded a step 5 0 1 7.0", "scheduling delay mean 10 0 2 70.0 no goal",
		"The order of the systems differs in 1 of 2 pairs at one load.",
		"TTFT mean, s slow 2.00 2.00 TTFT mean, s bad 2.00 1.86", "fewer runs than 80 % meet every goal",
		"few of them good")
	if at := strings.Index(text, "bad "); at > strings.Index(text, "good ") {
		t.Error("the worst run is not the first")
	}
	d = Validation(&validate.Report{Name: "v", Runs: r.Runs[1:2]})
	if want := []string{"No run is below saturation; the goals are for those."}; !slices.Equal(
		d.Answers, want) || len(d.Warnings) > 0 {
		t.Errorf("of a saturated run: %q, %v", d.Answers, d.Warnings)
	}
	r.Runs = []validate.ValidatedRun{r.Runs[0], r.Runs[3]}
	if last := Validation(r).Answers[1]; last != "The order of the systems is the same: in all 1 "+
		"pairs at one load, by mean TTFT and by throughput." {
		t.Errorf("the order is %q", last)
	}
}

// Charts have the figures in their units, a dot a run.
func TestChartsOfValidations(t *testing.T) {
	r := &validate.Report{Runs: []validate.ValidatedRun{validated("good", 1, 0.01, false),
		validated("over", 2, 0.5, true)}}
	want := map[string]float64{"good": -0.005, "over": -0.25}
	for _, c := range Validation(r).Figures[0].Charts {
		if c.Title != "mean TBT" {
			continue
		}
		for _, dot := range slices.Concat(c.Lines[0].Points, c.Lines[1].Points) {
			if off, ok := want[dot.Note]; !ok || math.Abs(dot.X-30) > 1e-9 ||
				math.Abs(dot.Y-30*(1+off)) > 1e-9 || c.X != "live (ms)" {
				t.Errorf("the dot of %s is at %g, %g of %s", dot.Note, dot.X, dot.Y, c.X)
			}
			delete(want, dot.Note)
		}
		if len(c.Lines[1].Points) != 1 {
			t.Errorf("%d dots are saturated", len(c.Lines[1].Points))
		}
	}
	if len(want) > 0 {
		t.Errorf("no dots of %v", want)
	}
}

// A host that differs from the simulated one is reported.
func TestDoubtsOfValidations(t *testing.T) {
	r := &validate.Report{Runs: []validate.ValidatedRun{validated("a", 1, 0, false),
		validated("b", 1, 0, false), validated("c", 1, 0, false)}}
	add := func(i int, metric string, live, simulated float64) {
		run := &r.Runs[i]
		run.Comparisons = append(run.Comparisons, comparedAs(run.Run, metric, live, simulated))
	}
	for i := range r.Runs {
		add(i, "phase_decode_host_s", []float64{1.5, 1, 2}[i], 1)
		add(i, "phase_decode_linears_s", 2, 2)
	}
	text := printed(t, Validation(r))
	expectIn(t, text, "In 2 of 3 runs the host's part of a decode takes 1.50 to 2.00 times what is "+
		"simulated: hosts of one card differ; `sparseserve calibrate host` fits this one to a live run.")
}

func TestNumbersOfAblations(t *testing.T) {
	text := printed(t, Ablation(&validate.Ablation{
		Cards: []validate.AblationCard{{Dir: "a"}, {Dir: "b"}}, Runs: []int{1, 2},
		Errors: []validate.StepErrors{{Decode: 0.0155, Mixed: 0.0111}, {Decode: 0.02, Mixed: 0.03}},
		Rows: []validate.AblationRow{{Concept: "GEMM", Part: "gemm", Worth: []validate.StepErrors{
			{Decode: 0.5, Mixed: -0.001}, {Decode: 0.25, Mixed: 0}}}}}))
	expectIn(t, text, "What each part of the cost model is worth: by how many points the mean "+
		"absolute error of a run's mean step time grows without it.",
		"card 1: a, 1 run, with all parts 1.55 % (decode steps) and 1.11 % (mixed steps)",
		"card 2: b, 2 runs, with all parts 2.00 % (decode steps) and 3.00 % (mixed steps)",
		"concept part decode 1 mixed 1 decode 2 mixed 2", "GEMM gemm +50.00 -0.10 +25.00 +0.00",
		"A part pays with 0.2 points or more of either kind of step on every card (law 12).")
}

// The document of a folder has the document of the report in memory, followed by the folder's other
// contents.
func TestValidationOfAFolder(t *testing.T) {
	const file = "vllm-s-2-s1_model=llama3-8b_output_scale=1.5"
	dir := t.TempDir()
	kept := filepath.Join("..", "..", "experiments", "validation", "longbench-h200", "live", file)
	if err := os.CopyFS(filepath.Join(dir, "live", file), os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	question := folder(t, map[string]string{"one.toml": `gpu = "h200"
[workload]
requests = 32
[system]
engine = "sparseserve-live"
kv_gib = 20.0
dram_gib = 80.0

[selection]
stop = "head"

[prefill]
max_prompt_tokens = 8192
[[axis]]
list = [{ model = "llama3-8b", workload.output_scale = 1.5, workload.rate = 2.0, ` +
		`system.preset = "vllm-s" }]
`})
	sweep, err := config.LoadSweep(t.Context(), filepath.Join(question, "one.toml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := validate.Validation{Dir: dir, Sweep: sweep, Simulate: run.NewSimulator().Run, Program: "a",
		LiveProgram: "b", Kept: true, Live: nobody{}}
	report, _, err := v.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, dir, Validation(report))
}

// nobody is a process without live runs, because all are kept.
type nobody struct{ validate.LiveRunner }

func (nobody) Options() string { return "" }

// same holds the document of a folder against that of what is in memory.
func same(t *testing.T, dir string, want *doc.Doc) {
	t.Helper()
	got := made(t, dir)
	if len(got.Tables) <= len(want.Tables) || len(got.Files) == 0 {
		t.Errorf("the folder's tables are %d and its files %d", len(got.Tables), len(got.Files))
	}
	got.Tables, got.Files = got.Tables[:len(want.Tables)], nil
	if got.Figures = got.Figures[:len(want.Figures)]; len(want.Figures) == 0 {
		got.Figures = nil
	}
	for _, d := range []*doc.Doc{got, want} {
		for _, f := range d.Figures {
			for _, c := range f.Charts {
				c.ID = ""
				doc.Fit(c)
			}
		}
	}
	equal(t, got, want)
}

func equal(t *testing.T, got, want *doc.Doc) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the folder's document is\n%+v\nwant\n%+v", got, want)
	}
}
