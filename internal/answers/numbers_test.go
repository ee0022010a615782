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

	"github.com/sparseserve/sparseserve/experiments/whatif"
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
		"scheduling delay mean s": "0.250", "requests a step": "7.00", "blocks loaded a step": "48.0",
		"hits in HBM %": "90.0", "tokens of prompts in the prefix cache %": "30.0"})
	expect(t, "b", cells(t, p.Tables, first, "b"), map[string]string{"served %": "",
		"TTFT mean s": "2.50*", "TTFT P99 s": "8.00", "TBT mean ms": "62.1", "TBT P99 ms": "200",
		"output tok/s": "61.0*", "SLO": "no"})
	expect(t, "b", cells(t, p.Tables, inside, "b"), map[string]string{"blocks loaded a step": "-",
		"hits in HBM %": "-", "tokens of prompts in the prefix cache %": "-"})
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
		"Throughput (tokens/s)": 123} {
		if got, ok := drawn[y]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s of a is drawn as %g, want %g; all are %v", y, got, want, drawn)
		}
	}
}

func TestNumbersOfPlans(t *testing.T) {
	p := made(t, folder(t, map[string]string{"plan.json": `[{"name": "a", "model": "m", "gpu": "g",
 "seeds": [1, 2], "requests": 90, "goodput": 1.25, "low": 1.125, "high": 1.5, "limited_by": "tbt",
 "slo": "level", "bounds": [{"name": "tbt", "stat": "p99", "limit_s": 0.5, "value_s": 0.375}],
 "rejected_share": 0.02, "throughput_tok_s": 321, "runs": 17, "warnings": []},
 {"name": "b", "model": "m", "gpu": "g", "seeds": [1], "requests": 90, "goodput": 2,
 "warnings": []}]`}))
	expect(t, "a", cells(t, p.Tables, "Candidates", "a"), map[string]string{"limited by": "tbt",
		"bounds": "P99 TBT 0.375 of 0.500 s", "goodput req/s": "1.25", "95 % interval": "1.12 to 1.50",
		"rejected %": "2.00", "output tok/s": "321", "runs": "17"})
	expect(t, "b", cells(t, p.Tables, "Candidates", "b"), map[string]string{"95 % interval": "-"})
	bar := p.Figures[0].Charts[0].Bars[0].Parts[0]
	if bar.Value != 1.25 || *bar.Low != 1.125 || *bar.High != 1.5 {
		t.Errorf("the bar of a is %+v", bar)
	}
}

func TestNumbersOfPurchases(t *testing.T) {
	p := made(t, folder(t, map[string]string{"purchase.json": `{"load": "20/s", "slo": "level",
 "requests": 540, "seeds": [1], "prices": "mid", "warnings": [],
 "choice": {"name": "a", "gpu": "h100", "replicas": 2, "gpus": 4, "usd_per_hour": 15.4,
  "usd_per_million_output_tokens": 0.934, "headroom": 0.4375, "limited_by": ["tbt"]},
 "candidates": [
 {"name": "a", "gpu": "h100", "outcome": "meets", "replicas": 2, "gpus": 4,
  "price": {"provider": "p", "usd_per_gpu_hour": 3.85, "date": "2026-09-25"},
  "usd_per_hour": 15.4, "usd_per_million_output_tokens": 0.934,
  "limits": [{"limit": "P99 TBT <= 0.15 s", "name": "tbt", "of": 0.6673}],
  "throughput_tok_s": 4579},
 {"name": "b", "gpu": "a100", "outcome": "misses", "reason": "out of memory"}]}`}))
	if got, want := p.Answers[0], "a: 2 replicas, 4 h100, 15.4 $ an hour, 0 $ per million input "+
		"tokens "+
		"or 0.934 $ per million output "+
		"tokens; 43.8 % of the load could be added; beyond it tbt is missed"; got != want {
		t.Errorf("the answer is\n%q, want\n%q", got, want)
	}
	const title = "What each candidate comes to"
	expect(t, "a", cells(t, p.Tables, title, "a"), map[string]string{"outcome": "meets",
		"nearest limit": "P99 TBT <= 0.15 s, at 66.7 %", "price of": "p, 2026-09-25", "replicas": "2",
		"GPUs": "4", "$/GPU/h": "3.85", "$/h": "15.4", "$/M tokens": "0.934", "output tok/s": "4579"})
	expect(t, "b", cells(t, p.Tables, title, "b"), map[string]string{"outcome": "misses",
		"nearest limit": "out of memory", "replicas": "-", "$/h": "-", "$/M tokens": "-"})
	charts := p.Figures[0].Charts
	if y, v := charts[0].Y, charts[0].Bars[0].Parts[0].Value; y != "$ an hour" || v != 15.4 {
		t.Errorf("%s is drawn as %g", y, v)
	}
	if v := charts[1].Bars[0].Parts[0].Value; math.Abs(v-66.73) > 1e-9 {
		t.Errorf("the share of the limit is drawn as %g", v)
	}
}

func TestNumbersOfWhatIfs(t *testing.T) {
	low, high, cell := -0.3, -0.1, 1.5
	w := &whatif.Result{Metric: "ttft_mean", Label: "mean TTFT (s)"}
	c := &whatif.Case{Name: "a", Base: whatif.Value{Value: 2}, Knobs: []*whatif.KnobResult{{
		Knob: "link", Keys: []string{"card.link_h2d"}, Factor: true, Base: "1",
		Points: []whatif.Change{{Setting: "0.5", Value: whatif.Value{Value: 2.5}, Change: 0.25},
			{Setting: "2", Value: whatif.Value{Value: 1.6}, Change: -0.2, Low: &low, High: &high}},
	}}, Heat: &whatif.HeatMap{A: "link", B: "hbm", ValuesA: []string{"1"}, ValuesB: []string{"1"},
		Cells: [][]*float64{{&cell}}}}
	drawn, of := tornado(w, c)
	of.Title = "knobs"
	for i, want := range []map[string]string{
		{"has": "x 1", "value": "x 0.5", "ttft_mean": "2.50", "change %": "+25.0", "95 % interval": "-"},
		{"has": "x 1", "value": "x 2", "ttft_mean": "1.60", "change %": "-20.0",
			"95 % interval": "-30.0 to -10.0"},
	} {
		got := of
		got.Rows = of.Rows[i : i+1]
		expect(t, want["value"], cells(t, []doc.Table{got}, "knobs", "link"), want)
	}
	if e := drawn.Effects; e[0].Change != 25 || !e[0].Below || e[1].Change != -20 || e[1].Below ||
		*e[1].Low != -30 || *e[1].High != -10 {
		t.Errorf("effects are %+v", e)
	}
	if h := heatOf(w, c).Heat.Cells[0]; h.Value != 1.5 || h.Change != -25 {
		t.Errorf("the cell is %+v", h)
	}
}
