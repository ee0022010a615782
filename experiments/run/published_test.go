package run

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/des"
)

// publishedRun is one row of testdata/published_runs.csv.
type publishedRun struct {
	model, gpu     string
	gpus           int
	prompt, output int
	rate           float64 // requests/s
	ttft, tbt, e2e float64 // ms
}

// Servers to which nothing was fitted, except the TTFT of the first two rows: vLLM 0.15.1 with
// other models and loads. With -update it writes the table of docs/evidence.md. The README has the
// least and the largest error of the others.
func TestEvidencePageOfPublishedRuns(t *testing.T) {
	runs := publishedRuns(t)
	page := filepath.Join("..", "..", "docs", "evidence.md")
	table := "| model | prompt + output | req/s | TTFT | TBT | end to end |\n|-|-|-:|-:|-:|-:|\n"
	fitted := 2
	if testing.Short() {
		runs, fitted = runs[1:3], 1
	}
	var ttfts, tbts []float64 // errors
	for i, r := range runs {
		trace := poissonTrace(t, r)
		c, err := config.Load("", []string{
			"model=" + r.model, "gpu=" + r.gpu, fmt.Sprintf("system.tensor_parallel=%d", r.gpus),
			"system.preset=vllm-0.15", "system.sampling=top-p", "system.max_requests=128",
			"system.max_tokens=2048", "prefill.chunk_tokens=2048",
			"workload.trace=" + trace, "workload.prefix_hit=1",
		})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := NewSimulator().Run(t.Context(), c[0], Sink{})
		if err != nil {
			t.Fatal(err)
		}
		ttft, tbt := 1e3*sum.TTFT.Mean, 1e3*sum.TBT.Mean
		e2e := ttft + tbt*float64(r.output-1)
		off := func(got, want float64) float64 { return 100 * (got/want - 1) }
		row := fmt.Sprintf("| %s | %d + %d | %g | %.1f ms, %+.1f %% | %.2f ms, %+.1f %% | "+
			"%.0f ms, %+.1f %% |", r.model, r.prompt, r.output, r.rate, r.ttft, off(ttft, r.ttft), r.tbt,
			off(tbt, r.tbt), r.e2e, off(e2e, r.e2e))
		table += row + "\n"
		if i >= fitted {
			ttfts, tbts = append(ttfts, off(ttft, r.ttft)), append(tbts, off(tbt, r.tbt))
		}
		if testing.Short() && !strings.Contains(testkit.BlockOf(t, page, "published"), row+"\n") {
			t.Errorf("%s lacks the row %s", page, row)
		}
		for _, m := range []struct {
			name                string
			got, want, tolerate float64
		}{{"mean TTFT", ttft, r.ttft, 10}, {"mean TBT", tbt, r.tbt, 7},
			{"mean end to end", e2e, r.e2e, 7}} {
			if math.Abs(off(m.got, m.want)) > m.tolerate {
				t.Errorf("%s at %g req/s: %s is %.4g ms, measured %.4g: %+.1f %%", r.model, r.rate, m.name,
					m.got, m.want, off(m.got, m.want))
			}
		}
	}
	if testing.Short() {
		return
	}
	rows, _ := sglangRows(t)
	testkit.Block(t, page, "published", table+strings.Join(rows, "\n")+"\n")
	inReadme(t, "vLLM 0.15.1, eleven loads of four models, one and two H100s", ttfts, tbts)
}

// publishedRuns reads the table.
func publishedRuns(t *testing.T) (runs []publishedRun) {
	t.Helper()
	for _, row := range publishedRows(t, "published_runs.csv") {
		n := numbers(t, row[2:])
		runs = append(runs, publishedRun{row[0], row[1], int(n[0]), int(n[1]), int(n[2]), n[3],
			n[4], n[5], n[6]})
	}
	return runs
}

// publishedRows reads the rows of a file of testdata.
func publishedRows(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.Comment = '#'
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

func numbers(t *testing.T, texts []string) []float64 {
	t.Helper()
	n := make([]float64, len(texts))
	for i, text := range texts {
		var err error
		if n[i], err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// SGLang, to which no figure was fitted; its kernels, fa2, are the nearer of two, and its CPU time
// per request is from another published run. TBT is within 15 % at each rate, TTFT up to 8 requests
// a second, end to end within 16 %. Beyond 160 requests decodes leave the CUDA graphs, and TBT
// rises more than 2.5 times.
func TestPublishedRunsOfSGLang(t *testing.T) {
	page := testkit.BlockOf(t, filepath.Join("..", "..", "docs", "evidence.md"), "published")
	rows, errors := sglangRows(t)
	for _, row := range rows {
		if !strings.Contains(page, row+"\n") {
			t.Errorf("docs/evidence.md lacks the row %s", row)
		}
	}
	inReadme(t, "SGLang 0.4, five loads of Llama-3.3-70B, four H200s", errors[0], errors[1])
}

// inReadme looks for the README's row of the errors in per cent of TTFT and TBT.
func inReadme(t *testing.T, against string, ttfts, tbts []float64) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	row := fmt.Sprintf("| %s | %+.1f to %+.1f %% | %+.1f to %+.1f %% |", against, slices.Min(ttfts),
		slices.Max(ttfts), slices.Min(tbts), slices.Max(tbts))
	if !strings.Contains(string(readme), "\n"+row) {
		t.Errorf("README.md lacks the row %s (%v)", row, err)
	}
}

// sglangRows returns the rows of the runs of SGLang for docs/evidence.md, and the errors of TTFT,
// TBT and end to end in per cent.
func sglangRows(t *testing.T) (table []string, errors [3][]float64) {
	t.Helper()
	var before float64 // TBT
	for _, text := range publishedRows(t, "published_sglang.csv") {
		n := numbers(t, text)
		rate, requests := n[0], int(n[1])
		c, err := config.Load("", []string{"model=testdata/llama3.3-70b", "gpu=h200",
			"system.preset=sglang", "system.engine=sglang-0.4", "system.tensor_parallel=4",
			"system.utilisation=0.85", "prefix_cache.mode=off",
			"workload.trace=" + uniformTrace(t, rate, requests, n[2], n[3])})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := NewSimulator().Run(t.Context(), c[0], Sink{})
		if err != nil {
			t.Fatal(err)
		}
		row := fmt.Sprintf("| llama3.3-70b, SGLang, four H200s | %.0f + %.0f | %g |",
			n[2]/n[1], n[3]/n[1], rate)
		for i, m := range []struct{ got, want, to, most float64 }{{1e3 * sum.TTFT.P50, n[4], 8, 15},
			{1e3 * sum.TBT.P50, n[5], 16, 15}, {1e3 * sum.E2E.Mean, n[6], 16, 16}} {
			off := 100 * (m.got/m.want - 1)
			if rate <= m.to && math.Abs(off) > m.most {
				t.Errorf("figure %d at %g req/s: %.4g ms, measured %.4g: %+.1f %%", i, rate, m.got, m.want,
					off)
			}
			row += fmt.Sprintf(" %.*f ms, %+.1f %% |", []int{1, 2, 0}[i], m.want, off)
			errors[i] = append(errors[i], off)
		}
		if tbt := sum.TBT.P50; rate == 8 && tbt < 2.5*before || tbt <= before {
			t.Errorf("TBT of %.4g s at %g req/s after %.4g", tbt, rate, before)
		} else {
			before = tbt
		}
		table = append(table, row)
	}
	return table, errors
}

// uniformTrace writes requests of lengths that are uniform in 1 to 1,024 before they are scaled to
// totals, with Poisson arrivals.
func uniformTrace(t *testing.T, rate float64, requests int, prompts, outputs float64) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("arrived_s,prompt_tokens,output_tokens,set\n")
	random, at := des.Rand(1, "published"), 0.0
	first, second := random.Perm(requests), random.Perm(requests)
	length := func(place int, total float64) int {
		n := float64(requests)
		return max(1, int(math.Round((float64(place)+0.5)/n*2*total/n)))
	}
	for i := range requests {
		fmt.Fprintf(&text, "%.6f,%d,%d,\n", at, length(first[i], prompts), length(second[i], outputs))
		at += random.ExpFloat64() / rate
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// poissonTrace writes ten minutes of requests of a run's lengths. Gaps between the requests of the
// one run whose times are published vary as in a Poisson process.
func poissonTrace(t *testing.T, r publishedRun) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("arrived_s,prompt_tokens,output_tokens,set\n")
	random := des.Rand(1, "published")
	for at := 0.0; at < 600; at += random.ExpFloat64() / r.rate {
		fmt.Fprintf(&text, "%.6f,%d,%d,\n", at, r.prompt, r.output)
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
