package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runs "github.com/sparseserve/sparseserve/experiments/run"
)

// If the host of a kept run took longer than the engine's, both tables say so. They say nothing of
// a run with KV in HBM, whose host has little to do.
func TestValidateNamesASlowHost(t *testing.T) {
	for _, c := range []struct {
		system string
		told   bool
	}{{"sparseserve-chunked", true}, {"vllm-s", false}} {
		t.Run(c.system, func(t *testing.T) {
			t.Parallel()
			dir, live := t.TempDir(), filepath.Join("live", c.system+"-1-s1")
			kept := filepath.Join("..", "..", "experiments", "validation", "sessions-h200", live)
			if err := os.CopyFS(filepath.Join(dir, live), os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}
			config := filepath.Join(t.TempDir(), "one.toml")
			text, err := os.ReadFile(filepath.Join("..", "..", "experiments", "validate-prefix.toml"))
			if err != nil {
				t.Fatal(err)
			}
			one := strings.NewReplacer(
				`preset = ["vllm", "vllm-s", "sparseserve", "sparseserve-chunked"]`,
				`preset = "`+c.system+`"`).Replace(string(text))
			writeFile(t, config, one)
			status, out, errs := runHere(t.Context(), runs.NewSimulator().Run, "validate", "reuse",
				config, "--set", "workload.rate=1", "--out", dir)
			if status != 0 {
				t.Fatalf("status %d, %s", status, errs)
			}
			_, markdown, _ := runHere(t.Context(), nil, "report", dir, "--format", "md")
			for _, text := range []string{out, markdown} {
				if told := strings.Contains(text, "In 1 of 1 run the host's part of a decode takes ") &&
					strings.Contains(text, "calibrate host"); told != c.told {
					t.Errorf("told %v, want %v:\n%s", told, c.told, text)
				}
			}
		})
	}
}
