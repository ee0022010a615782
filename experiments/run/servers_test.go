package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// publishedServer is one row of testdata/published_servers.csv.
type publishedServer struct {
	program, version, model, gpu, gpus string

	requests, concurrency, rate, prompt, output string

	measured [3]string // duration, s; mean TTFT and TPOT, ms; empty: not published
}

// settings are the keys that repeat the run: defaults of the nearest engine.
func (r *publishedServer) settings() []string {
	engine := "sglang-0.5"
	switch {
	case r.program == "vllm" && r.version < "0.19":
		engine = "vllm-0.15"
	case r.program == "vllm":
		engine = "vllm-0.19"
	}
	all := []string{"model=" + r.model, "gpu=" + r.gpu, "system.tensor_parallel=" + r.gpus,
		"system.preset=" + r.program, "system.engine=" + engine, "workload.trace=synthetic",
		"workload.prompt_lengths=" + lengths(r.prompt), "workload.output_scale=1",
		"workload.output_lengths=" + lengths(r.output), "workload.requests=" + r.requests}
	switch {
	case r.rate != "":
		return append(all, "workload.rate="+r.rate)
	case r.concurrency != "":
		return append(all, "workload.concurrency="+r.concurrency)
	}
	return append(all, "workload.concurrency="+r.requests)
}

// lengths is the distribution of a column: a number, or a range of equally likely ones.
func lengths(column string) string {
	if least, most, isRange := strings.Cut(column, "-"); isRange {
		return "uniform(" + least + ", " + most + ")"
	}
	return "fixed(" + column + ")"
}

// Servers of other people on cards other than an H100, and models of many classes: nothing was
// fitted to them. With -update the test writes their table of docs/evidence.md.
func TestEvidencePageOfServers(t *testing.T) {
	var order []string
	rows := map[string][]publishedServer{}
	for _, f := range publishedRows(t, "published_servers.csv") {
		program, version, _ := strings.Cut(f[0], " ")
		r := publishedServer{program, version, f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8],
			[3]string(f[9:12])}
		name := fmt.Sprintf("| %s | %s | %s %s |", r.model, f[0], r.gpus, strings.ToUpper(
			strings.TrimSuffix(r.gpu, "-80gb")))
		if rows[name] == nil {
			order = append(order, name)
		}
		rows[name] = append(rows[name], r)
	}
	page := filepath.Join("..", "..", "docs", "evidence.md")
	if testing.Short() {
		order = slices.DeleteFunc(order, func(name string) bool {
			return !strings.Contains(name, "deepseek-r1 | vllm")
		})
	}
	simulator := NewSimulator()
	table := "| model | server | GPUs | prompt + output | duration | TTFT | TPOT |\n" +
		"|-|-|-|-|-:|-:|-:|\n"
	for _, name := range order {
		row := name + " "
		var off [3][]float64 // per cent
		var loads []string
		for i := range rows[name] {
			r := &rows[name][i]
			c, err := config.Load("", r.settings())
			if err != nil {
				t.Fatal(err)
			}
			sum, err := simulator.Run(t.Context(), c[0], Sink{})
			if err != nil {
				t.Fatal(err)
			}
			for j, got := range []float64{sum.SimulatedS, 1e3 * sum.TTFT.Mean, 1e3 * sum.TPOT.Mean} {
				if r.measured[j] != "" {
					off[j] = append(off[j], 100*(got/numbers(t, r.measured[j:j+1])[0]-1))
				}
			}
			loads = append(loads, r.prompt+"+"+r.output)
		}
		row += strings.Join(slices.Compact(loads), " ") + " |"
		for _, e := range off {
			if len(e) == 0 {
				row += " - |"
			} else {
				row += fmt.Sprintf(" %+.0f to %+.0f %% |", slices.Min(e), slices.Max(e))
			}
		}
		table += row + "\n"
		if strings.Contains(name, "deepseek-v3.2") {
			inReadme(t, "vLLM 0.13, four loads of DeepSeek-V3.2, eight H200s", off[1], off[2])
		}
		if testing.Short() && !strings.Contains(testkit.BlockOf(t, page, "servers"), row+"\n") {
			t.Errorf("%s lacks the row %s", page, row)
		}
	}
	if !testing.Short() {
		testkit.Block(t, page, "servers", table)
	}
}
