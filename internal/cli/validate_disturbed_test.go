package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A kept run on a quiet host is not warned of; the same run with one step in
// ten twice as long is, in both tables, and neither fails. Fifty times as long, they
// stood still.
func TestValidateWarnsOfADisturbedHost(t *testing.T) {
	kept := filepath.Join("..", "..", "experiments", "validation", "h200")
	dir, run := t.TempDir(), "vllm-8-s1 model=llama3-8b output_scale=1.5"
	var index struct {
		Name   string           `json:"name"`
		Device string           `json:"device"`
		Runs   []map[string]any `json:"runs"`
	}
	text, err := os.ReadFile(filepath.Join(kept, "runs.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	index.Runs = slices.DeleteFunc(index.Runs, func(r map[string]any) bool { return r["run"] != run })
	if len(index.Runs) != 1 {
		t.Fatalf("%s is kept %d times", run, len(index.Runs))
	}
	live := index.Runs[0]["live"].(string)
	for _, folder := range []string{live, index.Runs[0]["simulated"].(string)} {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(kept, folder))); err != nil {
			t.Fatal(err)
		}
	}
	if text, err = json.Marshal(&index); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "runs.json"), string(text))
	steps := index.Runs[0]["steps"].(string)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, steps)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, slow := range []float64{1, 2, 50} {
		disturbed, stalled := slow > 1, slow == 50
		slowSteps(t, filepath.Join(kept, steps), filepath.Join(dir, steps), slow)
		for _, flags := range [][]string{nil, {"--markdown"}} {
			status, out, errs := runHere(t.Context(), nil, append([]string{"validate", "--recompute", dir}, flags...)...)
			warned := strings.Contains(out, "\nThe host disturbed 1 of 1 live run that can tell: one in 20 of the steps of the same work takes more than 1.2 times their median.\n") &&
				math.Abs(timesOf(out, live+", "+run+": ")/slow-1) < 0.1
			stood := strings.Contains(out, "\n1 live run stood still within steps, ") && strings.Count(out, live+", "+run+": ") == 2
			if status != 0 || errs != "" || warned != disturbed || strings.Contains(out, "disturbed") != disturbed || stood != stalled {
				t.Errorf("steps %g times as long, %v: status %d, stderr %q, stdout\n%s", slow, flags, status, errs, out)
			}
		}
	}
}

// timesOf is the number behind a run's name, 0 where there is none.
func timesOf(out, name string) float64 {
	_, rest, _ := strings.Cut(out, name)
	number, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.ParseFloat(number, 64)
	return n
}

// slowSteps copies a table of steps, every tenth slow times as long.
func slowSteps(t *testing.T, from, into string, slow float64) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
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
