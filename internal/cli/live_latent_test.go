package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// tinyDSA is a live run of the example model with latent attention.
func tinyDSA(t *testing.T, more ...string) (status int, out, errs string) {
	t.Helper()
	model, err := filepath.Abs("../../examples/models/tiny-dsa.toml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	args := []string{"simulate", "--live=reference", "--json", "--out", "out", "--set",
		"model=" + model,
		"--set", "gpu=h200", "--set", "system.dram_gib=1", "--set", "selection.budget_tokens=128",
		"--set", "workload.trace=synthetic", "--set", "workload.prompt_lengths=fixed(150)",
		"--set", "workload.output_lengths=fixed(4)", "--set", "workload.concurrency=2",
		"--set", "workload.requests=2", "--set", "output.steps=true",
		"--set", "prefix_cache.mode=off"}
	return runHere(t.Context(), run.NewSimulator().Run, append(args, more...)...)
}

// Both systems serve a model with latent attention live: as many rows selected, with hot buffers
// some of them loaded.
func TestLiveLatentAttention(t *testing.T) {
	t.Run("dsa", func(t *testing.T) { liveDSA(t, false) })
	t.Run("hisparse", func(t *testing.T) { liveDSA(t, true, "--set", "offload.hot_buffer=144") })
}

func liveDSA(t *testing.T, hot bool, more ...string) {
	status, out, errs := tinyDSA(t, append(more, "--set",
		"system.preset="+filepath.Base(t.Name()))...)
	var all []metrics.Summary
	if err := json.Unmarshal([]byte(out), &all); status != 0 || err != nil || len(all) != 1 {
		t.Fatalf("status %d, %v, stderr %q\n%s", status, err, errs, out)
	}
	const rows = 2 * 3 * 4 * 128 // requests, decodes, layers, tokens
	s := &all[0]
	l := s.Live
	if s.Completed != 2 || s.TTFT.Mean <= 0 || s.TBT.Mean <= 0 || l == nil ||
		l.RowsSelected != rows ||
		hot != (l.RowsLoaded > 0) || hot != (l.RowsSaved > 0) {
		t.Errorf("%s: %+v of %+v", s.Name, l, s)
	}
	if steps := runFile(t, "out", s.Name, run.StepsCSV); strings.Count(steps, "\n") < 2 {
		t.Errorf("steps: %q", steps)
	}
}

// changed is a file with the example model but for one passage.
func changed(t *testing.T, from, to string) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/models/tiny-dsa.toml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "changed.toml")
	text := strings.Replace(string(data), from, to, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil || text == string(data) {
		t.Fatalf("%v, or no %q", err, from)
	}
	return file
}

// What a live run of such a model cannot do is refused by name.
func TestLiveLatentAttentionRefuses(t *testing.T) {
	for want, more := range map[string][]string{
		"offload.hot_release": {"--set", "system.preset=hisparse-hybrid"},
		"offload.hot_buffer":  {"--set", "system.preset=hisparse", "--set", "offload.hot_buffer=128"},
		"system.preset":       {"--set", "system.preset=vllm"},
		"--weights":           {"--set", "system.preset=dsa", "--weights", "here"},
		"--record":            {"--set", "system.preset=dsa", "--record", "file"},
		"has experts (experts)": {"--set", "system.preset=dsa", "--set", "model=" + changed(t,
			"vocab = 2048\n", "vocab = 2048\nexperts = 4\nexperts_per_token = 2\nexpert_ffn = 64\n")},
		"has KV of 1 bytes (kv_bytes_each)": {"--set", "system.preset=dsa", "--set",
			"model=" + changed(t, "kv_bytes_each = 2", "kv_bytes_each = 1")},
		"has layers that share a selection": {"--set", "system.preset=dsa", "--set",
			"model=" + changed(t, "index_key_bytes = 128\n",
				"index_key_bytes = 128\nindex_first = 1\nindex_every = 2\n")},
	} {
		t.Run(want, func(t *testing.T) {
			if status, _, errs := tinyDSA(t, more...); status != 1 || !strings.Contains(errs, want) ||
				strings.Count(errs, "\n") > 2 {
				t.Errorf("status %d: %s", status, errs)
			}
		})
	}
}
