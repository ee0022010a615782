package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func TestPatterns(t *testing.T) {
	status, out, errs := invoke(t, nil, "list", "patterns", "llama3-8b-262k")
	if status != 0 || errs != "" {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "patterns-describe.txt", out)
}

// A simulation with a pattern file, and what is said of files that do not fit: one line with
// file, layer and head.
func TestPatternFiles(t *testing.T) {
	model, err := filepath.Abs("../../experiments/testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layer := `{"0": ["vertical_and_slash", 10, 20, 1], "1": ["stream_llm", 64, 64, 1]}`
	write("good.json", "["+layer+", "+layer+"]")
	write("short.json", "["+layer+"]")
	write("wide.json", `[{"0": ["block_sparse", 1, 0, 0]}, {"0": ["block_sparse", 1, 0, 0]}]`)
	write("unknown.json", `[`+layer+`, {"0": ["diagonal", 1, 1, 0], "1": ["stream_llm", 64, 64, 1]}]`)
	write(
		"zero.json",
		`[`+layer+`, {"0": ["stream_llm", 64, 64, 1], "1": ["vertical_and_slash", 0, 20, 1]}]`,
	)
	args := []string{"simulate", "--json", "--set", "model=" + model, "--set", "gpu=a100-80gb",
		"--set", "workload.requests=3", "--set", "workload.rate=1",
		"--set", "system.preset=vllm-minference", "--set", "prefill.over_length=truncate"}
	for file, want := range map[string]string{
		"good.json":    "",
		"short.json":   `short.json: layers: has 1, the model has 2`,
		"wide.json":    `wide.json: layer 0: has 1 heads, the model has 2 query heads`,
		"unknown.json": `unknown.json: layer 1, head 0: unknown pattern "diagonal"`,
		"zero.json":    `zero.json: layer 1, head 1: vertical-slash with a first size of 0`,
		"none.json":    `no such mix or file: none.json; mixes are `,
	} {
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run,
			append(args, "--set", "prefill.pattern="+file)...)
		if want == "" {
			if status != 0 {
				t.Errorf("%s: status %d, %s", file, status, errs)
			}
			continue
		}
		if status != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 ||
			!strings.Contains(errs, "prefill.pattern") {
			t.Errorf("%s: status %d, %q; want %q", file, status, errs, want)
		}
	}
}
