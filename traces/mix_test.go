package traces

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/sim"
)

const requestsFile = "longbench_requests.csv"

// longBenchRequests reads the real lengths by set and column, or skips when the
// file is not on this machine.
func longBenchRequests(t *testing.T) map[string]map[string][]float64 {
	t.Helper()
	path := os.Getenv("SPARSESERVE_DATA")
	if path == "" {
		path = filepath.Join("..", "..", "shared", "data")
	}
	path = filepath.Join(path, requestsFile)
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		t.Skipf("no %s: the distributions are not compared with the real requests, only with the "+
			"table's own statistics; set SPARSESERVE_DATA to the folder that has the file", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{
		"prompt_tokens_llama2": "prompt_llama2", "prompt_tokens_llama3": "prompt_llama3",
		"output_tokens_llama2_base": "output_base", "output_tokens_llama2_chat": "output_chat",
		"output_tokens_llama3_instruct": "output_instruct",
	}
	real := map[string]map[string][]float64{}
	for _, row := range rows[1:] {
		s := real[row[0]]
		if s == nil {
			s = map[string][]float64{}
			real[row[0]] = s
		}
		for i, name := range rows[0] {
			if to, ok := columns[name]; ok {
				v, err := strconv.ParseFloat(row[i], 64)
				if err != nil {
					t.Fatal(err)
				}
				s[to] = append(s[to], v)
			}
		}
	}
	for _, s := range real {
		for _, x := range s {
			slices.Sort(x)
		}
	}
	return real
}

// sample draws n requests of one set and returns their sorted lengths.
func sample(t *testing.T, name string, tokenizer Tokenizer, output string, n int) (prompts,
	outputs []float64) {
	t.Helper()
	m := newMix([]string{name}, tokenizer, output, 7)
	for range n {
		a, err := m.next()
		if err != nil {
			t.Fatal(err)
		}
		prompts, outputs = append(prompts, float64(a.Prompt)), append(outputs, float64(a.Output))
	}
	slices.Sort(prompts)
	slices.Sort(outputs)
	return prompts, outputs
}

// sampledColumns draws every column of one set.
func sampledColumns(t *testing.T, name string, n int) map[string][]float64 {
	got := map[string][]float64{}
	for output, tokenizer := range map[string]Tokenizer{OutputBase: Llama2, OutputChat: Llama2,
		OutputInstruct: Llama3} {
		got["prompt_"+string(tokenizer)], got["output_"+output] = sample(t, name, tokenizer, output, n)
	}
	return got
}

// ksReject is the two-sample Kolmogorov-Smirnov distance beyond which samples
// of n and m differ at a level of 0.001. With ties the test is conservative.
func ksReject(n, m int) float64 {
	return 1.949 * math.Sqrt(float64(n+m)/(float64(n)*float64(m)))
}

// ksResolution is the closer bound: the file is the population that the table
// was made from, so what remains is the steps of the table, one request of the
// set, and the noise of the sample itself.
func ksResolution(requests, sampled int) float64 {
	return 1.0/200 + 1/float64(requests) + 1.949/math.Sqrt(float64(sampled))
}

func TestSampledLengthsMatchLongBench(t *testing.T) {
	real := longBenchRequests(t)
	if len(real) != 21 {
		t.Fatalf("%d sets in the file, want 21", len(real))
	}
	const n = 20_000
	for name, columns := range real {
		for column, got := range sampledColumns(t, name, n) {
			want := columns[column]
			d := stat.KolmogorovSmirnov(got, nil, want, nil)
			if limit := min(ksReject(n, len(want)), ksResolution(len(want), n)); d > limit {
				t.Errorf("%s %s: KS distance %.4f over %.4f", name, column, d, limit)
			}
		}
	}
}

// The same comparison must reject lengths of another set, and a constant that
// stands in for ties.
func TestSampledLengthsWouldBeRejected(t *testing.T) {
	real := longBenchRequests(t)
	const n = 20_000
	got := sampledColumns(t, "2wikimqa", n)
	for _, c := range []struct{ set, column string }{
		{"qasper", "prompt_llama2"}, {"hotpotqa", "prompt_llama3"}, {"multi_news", "output_base"},
		{"dureader", "output_chat"},
	} {
		want := real[c.set][c.column]
		if d := stat.KolmogorovSmirnov(got[c.column], nil, want, nil); d < ksReject(n, len(want)) {
			t.Errorf("2wikimqa passes for %s %s at KS distance %.4f", c.set, c.column, d)
		}
	}
	ties := make([]float64, n)
	for i := range ties {
		ties[i] = 513
	}
	want := real["multi_news"]["output_base"] // 2 tokens in a fifth of its requests
	if d := stat.KolmogorovSmirnov(ties, nil, want, nil); d < ksReject(n, len(want)) {
		t.Errorf("a constant 513 passes for multi_news at KS distance %.4f", d)
	}
}

// Always runs: the table agrees with the statistics computed from the requests
// themselves when it was made, and so do the samples.
func TestTableMatchesItsGoldenStatistics(t *testing.T) {
	sets := loadTable()
	total := 0
	for _, s := range sets {
		total += s.requests
		if len(s.columns) != 5 {
			t.Errorf("%s has %d columns, want 5", s.name, len(s.columns))
		}
		got := sampledColumns(t, s.name, 20_000)
		for name, c := range s.columns {
			q := c.quantiles
			if n := len(q); n < 101 {
				t.Errorf("%s %s has %d quantiles", s.name, name, n)
			}
			if !slices.IsSorted(q) {
				t.Errorf("%s %s falls", s.name, name)
			}
			if q[0] != c.min || q[len(q)-1] != c.max {
				t.Errorf("%s %s: quantiles span %v to %v, want %v to %v", s.name, name, q[0],
					q[len(q)-1], c.min, c.max)
			}
			x := got[name]
			if mean, sd := stat.MeanStdDev(x, nil); math.Abs(mean-c.mean) > 0.01*c.mean+
				4*sd/math.Sqrt(float64(len(x))) {
				t.Errorf("%s %s: sampled mean %.1f, want %.1f", s.name, name, mean, c.mean)
			}
			if x[0] < c.min || x[len(x)-1] > c.max {
				t.Errorf("%s %s: sampled %v to %v beyond %v to %v", s.name, name, x[0], x[len(x)-1],
					c.min, c.max)
			}
		}
	}
	if len(sets) != 21 || total != 4750 {
		t.Errorf("%d sets of %d requests, want 21 of 4750", len(sets), total)
	}
}

// The SparseServe paper's mix under Llama-2 against the statistics of its 2,550
// requests together, computed from the request file.
func TestPaperMix(t *testing.T) {
	spec := DefaultSpec()
	spec.Requests = 50_000
	s, err := Open(spec, 3)
	if err != nil {
		t.Fatal(err)
	}
	var prompts []float64
	perSet, long := map[string]int{}, 0
	for a := range requests(t, s) {
		prompts = append(prompts, float64(a.Prompt))
		perSet[a.Set]++
		if a.Prompt > 32*1024 {
			long++
		}
	}
	slices.Sort(prompts)
	at := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, prompts, nil) }
	for _, c := range []struct {
		name            string
		got, want, slip float64
	}{
		{"mean", stat.Mean(prompts, nil), 12_805, 0.015},
		{"p5", at(0.05), 1_942, 0.03},
		{"p50", at(0.50), 9_469, 0.02},
		{"p95", at(0.95), 36_225, 0.02},
		{"max", prompts[len(prompts)-1], 66_170, 0.02},
		{"share above 32k", float64(long) / float64(len(prompts)), 0.0675, 0.05},
		{"share of lcc", float64(perSet["lcc"]) / float64(len(prompts)), 500.0 / 2550, 0.05},
		{"share of multifieldqa_en", float64(perSet["multifieldqa_en"]) / float64(len(prompts)),
			150.0 / 2550, 0.08},
	} {
		if math.Abs(c.got-c.want) > c.slip*c.want {
			t.Errorf("%s = %.4g, want %.4g", c.name, c.got, c.want)
		}
	}
	if len(perSet) != 10 {
		t.Errorf("%d sets drawn, want 10", len(perSet))
	}
}

// requests yields a stream to its end and fails the test on an error.
func requests(t testing.TB, s *Stream) func(yield func(sim.Arrival) bool) {
	return func(yield func(sim.Arrival) bool) {
		for {
			a, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok || !yield(a) {
				return
			}
		}
	}
}
