package answers

import (
	"bytes"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
)

// folder writes the files of a result folder by hand.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// made returns the page of a folder, and checks that its HTML has the rows of its tables.
func made(t *testing.T, dir string) *doc.Doc {
	t.Helper()
	d, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := show.HTML(&out, d); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(html.UnescapeString(out.String()), ` class="n"`, "")
	for i := range d.Tables {
		table := &d.Tables[i]
		for _, row := range table.Rows {
			var want []string
			for _, c := range table.Shown() {
				want = append(want, row.At(c))
			}
			if !strings.Contains(text, "<tr><td>"+strings.Join(want, "</td><td>")+"</td></tr>") {
				t.Errorf("the page lacks the row %v", want)
			}
		}
	}
	return d
}

// cells returns the cell of each column of the row that begins with a name.
func cells(t *testing.T, all []doc.Table, title, name string) map[string]string {
	t.Helper()
	for _, of := range all {
		for _, row := range of.Rows {
			if of.Title == title && slices.Contains([]string{row.At(0), row.At(1)}, name) {
				out := map[string]string{}
				for i, c := range of.Columns {
					out[strings.TrimSpace(c.Name+" "+c.Unit)] = row.At(i)
				}
				return out
			}
		}
	}
	t.Fatalf("no table %q with a row %q", title, name)
	return nil
}

func expect(t *testing.T, of string, got map[string]string, want map[string]string) {
	t.Helper()
	for column, value := range want {
		if got[column] != value {
			t.Errorf("%s: %s is %q, want %q", of, column, got[column], value)
		}
	}
}

// Two runs whose figures all differ, in seconds, shares and counts.
const twoRuns = `[
{"name": "a-1", "system": "a", "model": "m", "gpu": "g", "seed": 1, "rate": 1, "requests": 8,
 "completed": 6, "rejected": 2, "served_share": 0.75, "steps": 100,
 "ttft_s": {"mean": 1.5, "p50": 1.25, "p90": 2, "p95": 3, "p99": 4},
 "tbt_s": {"mean": 0.0321, "p50": 0.0201, "p90": 0.04, "p95": 0.05, "p99": 0.0654},
 "queue_delay_s": {"mean": 0.25, "p50": 0.125}, "throughput_tok_s": 123, "prompt_tok_s": 4560,
 "batch_mean": 7, "blocks_loaded_per_step": 48, "hit_ratio": 0.9,
 "prefix_cache": {"hit_share": 0.3}, "slo": "P99 TBT <= 0.1 s", "slo_met": true, "warnings": []},
{"name": "b-1", "system": "b", "model": "m", "gpu": "g", "seed": 1, "rate": 1, "requests": 8,
 "completed": 8, "rejected": 0, "served_share": 1, "steps": 100,
 "ttft_s": {"mean": 2.5, "p99": 8}, "tbt_s": {"mean": 0.0621, "p99": 0.2}, "throughput_tok_s": 61,
 "slo": "P99 TBT <= 0.1 s", "slo_met": false, "warnings": []},
{"name": "c-1", "system": "c", "model": "m", "gpu": "g", "seed": 1, "rate": 1, "requests": 8,
 "completed": 8, "steps": 9, "ttft_s": {"mean": 3}, "tbt_s": {"mean": 0.09}, "throughput_tok_s": 5,
 "slo": "P99 TBT <= 0.1 s", "interrupted": "by hand", "slo_met": true, "warnings": []}]`

func TestNumbersOfRuns(t *testing.T) {
	p := made(t, folder(t, map[string]string{"summary.json": twoRuns}))
	const first, inside = "Results", "Inside the server"
	expect(t, "a", cells(t, p.Tables, first, "a"), map[string]string{"served %": "75.0",
		"TTFT mean s": "1.50†", "TTFT P99 s": "4.00", "TBT mean ms": "32.1", "TBT P99 ms": "65.4",
		"output tok/s": "123†", "SLO": "met"})
	expect(t, "a", cells(t, p.Tables, inside, "a"), map[string]string{
		"scheduling delay mean s": "0.250", "requests a step": "7.00"})
	expect(t, "a", cells(t, p.Tables, "KV cache", "a"), map[string]string{
		"blocks loaded a step": "48.0", "hits in HBM %": "90.0"})
	expect(t, "a", cells(t, p.Tables, "Prefix cache", "a"), map[string]string{
		"tokens of prompts in the prefix cache %": "30.0"})
	expect(t, "b", cells(t, p.Tables, first, "b"), map[string]string{"served %": "",
		"TTFT mean s": "2.50*", "TTFT P99 s": "8.00", "TBT mean ms": "62.1", "TBT P99 ms": "200",
		"output tok/s": "61.0*", "SLO": "no"})
	expect(t, "b", cells(t, p.Tables, "KV cache", "b"), map[string]string{
		"blocks loaded a step": "-", "hits in HBM %": "-"})
	expect(t, "b", cells(t, p.Tables, "Prefix cache", "b"), map[string]string{
		"tokens of prompts in the prefix cache %": "-"})
	expect(t, "c", cells(t, p.Tables, first, "c"), map[string]string{"SLO": "-"})

	drawn := map[string]float64{} // the height of system a in each chart
	for _, s := range p.Figures {
		for _, c := range s.Charts {
			for _, bar := range c.Bars {
				if bar.Name == "a" {
					drawn[c.Y] = bar.Parts[0].Value
				}
			}
			for _, l := range c.Lines {
				if l.Name == "a" {
					drawn[c.Y] = l.Points[0].Y
				}
			}
		}
	}
	for y, want := range map[string]float64{"Mean TTFT (s)": 1.5, "Mean TBT (ms)": 32.1,
		"Output (tokens/s)": 123} {
		if got, ok := drawn[y]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s of a is drawn as %g, want %g; all are %v", y, got, want, drawn)
		}
	}
}
