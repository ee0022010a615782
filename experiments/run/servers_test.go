package run

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// publishedServer is one row of testdata/published_servers.csv.
type publishedServer struct {
	program, version, model, gpu, gpus string

	requests, concurrency, rate, prompt, output, set string

	measured [3]string // duration, s; mean TTFT and TPOT, ms; empty: not published
}

// settings are the keys that repeat the run: defaults of the nearest engine.
func (r *publishedServer) settings() []string {
	engine := "sglang-0.5"
	switch {
	case r.program == "vllm" && (r.version < "0.19" || r.version == "of 2025"):
		engine = "vllm-0.15"
	case r.program == "vllm":
		engine = "vllm-0.19"
	}
	all := []string{"model=" + r.model, "gpu=" + r.gpu, "system.tensor_parallel=" + r.gpus,
		"system.preset=" + r.program, "system.engine=" + engine, "workload.trace=synthetic",
		"workload.prompt_lengths=" + lengths(r.prompt), "workload.output_scale=1",
		"workload.output_lengths=" + lengths(r.output), "workload.requests=" + r.requests}
	all = append(all, strings.Fields(r.set)...)
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

// publishedServers are the rows of one model on one server and card.
type publishedServers struct {
	model, server, gpu string
	rows               []publishedServer
}

// serversOf groups testdata/published_servers.csv in its order.
func serversOf(t *testing.T) (all []*publishedServers) {
	for _, f := range publishedRows(t, "published_servers.csv") {
		program, version, _ := strings.Cut(f[0], " ")
		r := publishedServer{program, version, f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8],
			f[13], [3]string(f[9:12])}
		i := slices.IndexFunc(all, func(s *publishedServers) bool {
			return s.model == r.model && s.server == f[0] && s.gpu == r.gpu
		})
		if i < 0 {
			i = len(all)
			all = append(all, &publishedServers{model: r.model, server: f[0], gpu: r.gpu})
		}
		all[i].rows = append(all[i].rows, r)
	}
	return all
}

// errors returns simulated over measured less 1, per cent, of duration, TTFT and TPOT.
func (s *publishedServers) errors(t *testing.T, simulator *Simulator) (off [3][]float64) {
	for i := range s.rows {
		r := &s.rows[i]
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
	}
	return off
}

// line is a row of the table of docs/evidence.md.
func (s *publishedServers) line(off [3][]float64) string {
	var gpus, loads []string
	for i := range s.rows {
		gpus = append(gpus, s.rows[i].gpus)
		loads = append(loads, strings.NewReplacer("819-1024", "1k", "6554-8192", "8k").Replace(
			s.rows[i].prompt+"+"+s.rows[i].output))
	}
	slices.Sort(gpus)
	line := fmt.Sprintf("| %s | %s | %s %s | %s | %d |", s.model, s.server,
		strings.Join(slices.Compact(gpus), " "), strings.ToUpper(strings.TrimSuffix(s.gpu, "-80gb")),
		strings.Join(distinct(loads), " "), len(s.rows))
	for _, e := range off {
		if len(e) == 0 {
			line += " - |"
			continue
		}
		slices.Sort(e)
		line += fmt.Sprintf(" %+.0f to %+.0f, %+.0f %% |", e[0], e[len(e)-1], stats.Of(e, 50))
	}
	return line
}

// distinct returns the different texts in the order of their first places.
func distinct(all []string) (once []string) {
	for _, text := range all {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return once
}

// Servers of other people on cards other than an H100, and models of many classes: nothing was
// fitted to them. With -update the test writes their table of docs/evidence.md.
func TestEvidencePageOfServers(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "evidence.md")
	simulator := NewSimulator()
	table := "| model | server | GPUs | prompt + output | runs | duration | TTFT | TPOT |\n" +
		"|-|-|-|-|-:|-:|-:|-:|\n"
	var sizes [3][]float64  // of the errors of InferenceX's database
	var hopper [2][]float64 // errors of Llama's TTFT and TPOT
	for _, s := range serversOf(t) {
		if testing.Short() && (s.model != "deepseek-r1" || s.rows[0].program != "vllm") {
			continue
		}
		off := s.errors(t, simulator)
		line := s.line(off)
		table += line + "\n"
		switch {
		case s.model == "deepseek-v3.2":
			inReadme(t, "vLLM 0.13, four loads of DeepSeek-V3.2, eight H200s", off[1], off[2])
		case s.model == "llama3.1-70b-fp8" && s.gpu != "b200":
			hopper[0], hopper[1] = append(hopper[0], off[1]...), append(hopper[1], off[2]...)
		}
		if testing.Short() && !strings.Contains(testkit.BlockOf(t, page, "servers"), line+"\n") {
			t.Errorf("%s lacks the row %s", page, line)
		}
		for j := range off {
			if s.rows[0].set != "" {
				for _, e := range off[j] {
					sizes[j] = append(sizes[j], math.Abs(e))
				}
			}
		}
	}
	if !testing.Short() {
		inReadme(t, fmt.Sprintf("vLLM of 2025, Llama-3.1-70B in FP8, 1 to 8 H100s or H200s, %d runs",
			len(hopper[0])), hopper[0], hopper[1])
		testkit.Block(t, page, "servers", table)
		testkit.Block(t, page, "inferencex", fmt.Sprintf("Mean size of the errors of the %d runs of "+
			"InferenceX's database: TPOT %.1f %%, TTFT %.0f %%. NVIDIA's AISimulate publishes\n24.3 %% "+
			"and 43.7 %% over all 1,135 points (accuracy report of 2026-10-01, same kernel tables).\n",
			len(sizes[2]), stat.Mean(sizes[2], nil), stat.Mean(sizes[1], nil)))
	}
}
