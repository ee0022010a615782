package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	runs "github.com/sparseserve/sparseserve/experiments/run"
)

// A kept run on a quiet host is not warned of; the same run with one step in
// ten twice as long is, in both tables, and neither fails; without those steps it meets its goals.
// Fifty times as long, they stood still for longer than any work takes.
func TestValidateWarnsOfADisturbedHost(t *testing.T) {
	const file = "vllm-s-2-s1_model=llama3-8b_output_scale=1.5"
	live := filepath.Join("live", file)
	dir := t.TempDir()
	kept := filepath.Join("..", "..", "experiments", "validation", "longbench-h100", live)
	if err := os.CopyFS(filepath.Join(dir, live), os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "one.toml")
	writeFile(t, config, oneKeptRun)
	if status, _, errs := runHere(t.Context(), runs.NewSimulator().Run, "validate", "reuse", config,
		"--out", dir); status != 0 {
		t.Fatalf("simulating the kept run: status %d, %s", status, errs)
	}
	steps := filepath.Join(dir, "steps", file+".csv.gz")
	quiet, err := os.ReadFile(steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, slow := range []float64{1, 2, 50} {
		disturbed, stalled := slow > 1, slow == 50
		slowSteps(t, quiet, steps, slow)
		for _, args := range [][]string{{"validate", "reuse", dir}, {"report", dir, "--format", "md"}} {
			status, out, errs := runHere(t.Context(), nil, args...)
			warned := strings.Contains(out, "The host disturbed 1 of 1 live run with enough steps to "+
				"judge: one in 20 of the steps of the same work takes more than 1.2 times their median. ") &&
				math.Abs(lastNumber(out, live)/slow-1) < 0.1
			stood := strings.Contains(out, "1 live run stood still within steps, ") &&
				strings.Count(out, live) == 2
			still := strings.Contains(out, "The machine stood still in ") &&
				strings.Contains(out, "Without that, 1 of 1 meet every goal.\n")
			if status != 0 || errs != "" || warned != disturbed || still != disturbed ||
				strings.Contains(out, "disturbed") != disturbed || stood != stalled {
				t.Errorf("steps %g times as long, %v: status %d, stderr %q, stdout\n%s", slow, args,
					status, errs, out)
			}
		}
	}
}

// oneKeptRun is the point of a kept run by itself.
const oneKeptRun = `gpu = "h100-80gb"
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
list = [{ model = "llama3-8b", workload.output_scale = 1.5, workload.rate = 2.0, system.preset = "vllm-s" }]
`

// lastNumber is that of the last line with a name, 0 where there is none.
func lastNumber(out, name string) float64 {
	_, line, _ := strings.Cut(out[max(0, strings.LastIndex(out, name)):], "\n")
	line = strings.TrimSuffix(out[max(0, strings.LastIndex(out, name)):], line)
	cells := strings.Fields(strings.NewReplacer("│", " ", "|", " ").Replace(line))
	if len(cells) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(cells[len(cells)-1], 64)
	return n
}

// slowSteps copies a table of steps, every tenth slow times as long.
func slowSteps(t *testing.T, text []byte, into string, slow float64) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(plain)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(rows[0], "live_s")
	for i := 10; i < len(rows); i += 10 {
		live, err := strconv.ParseFloat(rows[i][column], 64)
		if err != nil {
			t.Fatal(err)
		}
		rows[i][column] = strconv.FormatFloat(slow*live, 'f', -1, 64)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, into, out.String())
}
