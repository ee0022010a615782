package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// wideModel writes the tiny model with the heads of 128 values that sparse prefill's kernels have,
// two layers of two, and a file of their patterns.
func wideModel(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../experiments/testdata/tiny/config.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, folder := range []string{"wide", "narrow"} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wide := strings.Replace(string(text), `"head_dim": 64`, `"head_dim": 128`, 1)
	files := map[string]string{"wide/config.json": wide, "narrow/config.json": string(text),
		"patterns.json": `[{"0": ["vertical_and_slash", 40, 33, 0.5], "1": ["block_sparse", 2, 0, 0.5]},
			{"0": ["stream_llm", 16, 64, 0.5], "1": ["vertical_and_slash", 60, 50, 0.5]}]`}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wideLive is the command of a live run of it.
func wideLive(more ...string) []string {
	return append(
		[]string{
			"simulate",
			"--live=reference",
			"--set",
			"model=wide",
			"--set",
			"gpu=h200",
			"--set",
			"workload.concurrency=1",
			"--set",
			"workload.prompt_lengths=fixed(150)",
			"--set",
			"workload.output_lengths=fixed(3)",
			"--set",
			"workload.requests=2",
			"--set",
			"system.preset=vllm-minference",
			"--set",
			"system.kv_gib=0.02",
			"--set",
			"system.max_tokens=100",
			"--set",
			"prefill.chunk_tokens=100",
			"--set",
			"system.max_requests=2",
			"--set",
			"prefill.pattern=patterns.json",
		},
		more...)
}

// A live run prefills by a file of patterns; its indices have a phase of their own.
func TestLivePrefillsByPatterns(t *testing.T) {
	wideModel(t)
	status, _, errs := runHere(
		t.Context(),
		run.NewSimulator().Run,
		wideLive("--split-every", "1", "--out", "out/live")...)
	if status != 0 {
		t.Fatalf("status %d, %s", status, errs)
	}
	text, err := os.ReadFile("out/live/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	if s := only(t, string(text)); s.Completed != 2 || s.PhaseS["prefill_index"] <= 0 ||
		s.PhaseS["prefill_attention"] <= 0 {
		t.Errorf("%+v", s)
	} else if rest, ok := s.PhaseS[metrics.UnsplitPhase]; rest != 0 || !ok {
		t.Errorf("of steps that are all split, %g s are not; it says so: %v", rest, ok)
	}
}

// The time of steps that are not split is in the summary, so that the parts cover all steps.
func TestLiveStepsThatAreNotSplit(t *testing.T) {
	wideModel(t)
	status, _, errs := runHere(t.Context(), run.NewSimulator().Run,
		wideLive("--split-every", "2", "--out", "out/live")...)
	if status != 0 {
		t.Fatalf("status %d, %s", status, errs)
	}
	text, err := os.ReadFile("out/live/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	if s := only(t, string(text)); s.PhaseS[metrics.UnsplitPhase] <= 0 || s.PhaseS["linears"] <= 0 {
		t.Errorf("phases %v", s.PhaseS)
	}
	if _, err := os.Stat("out/live/time.png"); err != nil {
		t.Error(err)
	}
}

// A pattern without a kernel, or one that does not fit the model, is one line that names it.
func TestLivePatternsThatDoNotFit(t *testing.T) {
	wideModel(t)
	for name, text := range map[string]string{
		"layers.json":  `[{"0": ["stream_llm", 16, 64, 0], "1": ["stream_llm", 16, 64, 0]}]`,
		"heads.json":   `[{"0": ["stream_llm", 16, 64, 0]}, {"0": ["stream_llm", 16, 64, 0]}]`,
		"unknown.json": `[{"0": ["stream_llm", 16, 64, 0], "1": ["spiral", 16, 64, 0]}]`,
		"zero.json":    `[{"0": ["vertical_and_slash", 0, 64, 0], "1": ["stream_llm", 16, 64, 0]}]`,
		"many.json":    `[{"0": ["block_sparse", 5000, 0, 0], "1": ["stream_llm", 1, 1, 0]}, {"0": ["stream_llm", 1, 1, 0], "1": ["stream_llm", 1, 1, 0]}]`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for set, want := range map[string]string{
		"prefill.pattern=layers.json":  "layers.json: layers: has 1, the model has 2",
		"prefill.pattern=heads.json":   "heads.json: layer 0: has 1 heads, the model has 2 query heads",
		"prefill.pattern=unknown.json": `unknown.json: layer 0, head 1: unknown pattern "spiral"`,
		"prefill.pattern=zero.json": "zero.json: layer 0, head 0: vertical-slash with a first size " +
			"of 0",
		"prefill.pattern=many.json": "layer 0, head 0: block-sparse (5000): the kernel chooses at " +
			"most 4096 blocks",
		"prefill.attention=dilated": `prefill.attention = "dilated": is simulated and has ` +
			"no kernel; a live run",
	} {
		args := wideLive("--set", set)
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		if status != 1 || !strings.Contains(errs, want) ||
			strings.Count(strings.TrimSpace(errs), "\n") > 0 {
			t.Errorf("%s: status %d, %q, want %q", set, status, errs, want)
		}
	}
	want := "live: sparse prefill of heads of 64 values; its kernels support 128 " +
		"(prefill.attention)"
	narrow := wideLive("--set", "model=narrow")
	if status, _, errs := runHere(t.Context(), run.NewSimulator().Run, narrow...); status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %q, want %q", status, errs, want)
	}
}

// validate compares live and simulated runs of systems with sparse prefill, indices apart.
func TestValidateSparsePrefill(t *testing.T) {
	wideModel(t)
	toml := `model = "wide"
gpu = "h200"
[workload]
requests = 2
concurrency = 1
prompt_lengths = "fixed(150)"
output_lengths = "fixed(3)"
[system]
engine = "sparseserve-live"
preset = ["vllm-minference", "sparseserve-minference"]
kv_gib = 0.02
dram_gib = 1.0
max_tokens = 100
max_requests = 2

[offload]
save_buffer_mib = 1.0

[prefill]
pattern = "patterns.json"
chunk_tokens = 100
`
	if err := os.WriteFile("v.toml", []byte(toml), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runHere(t.Context(), run.NewSimulator().Run, "validate", "v.toml",
		"--live=reference", "--split-every", "1", "--out", "out/v", "--json")
	if status != 0 {
		t.Fatalf("status %d, %s", status, errs)
	}
	for _, want := range []string{`"phase_mixed_prefill_index_s"`,
		`"phase_mixed_prefill_attention_s"`, `"vllm-minference`, `"sparseserve-minference`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}
