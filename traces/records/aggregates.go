package records

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// layout has the paths of a benchmark's aggregates. Keys of nested objects are joined by
// dots; an empty key is not in the result.
type layout struct {
	format string
	is     string // key that a result has; requests and latencies are in others
	// requests answered, and sent or failed
	requests, sent, failed string
	prompts, outputs       string // tokens
	sums                   bool   // prompts and outputs are totals, otherwise means
	rate, clients          string // of the load
	throughput             string // output tokens/s
	latency                string // format of a key, by a name and a statistic
	names                  [4]string
	stats                  [4]string // mean, median, P90, P99
	unit                   float64   // seconds
}

// latencies are the metrics of layout.names, in the order of the names.
var latencies = [4]string{"ttft", "tpot", "tbt", "e2e"}

// statistics are the metrics' names of layout.stats.
var statistics = [4]string{"mean", "p50", "p90", "p99"}

// layouts are the aggregates of vllm bench serve (vllm/benchmarks/serve.py), SGLang's bench_serving
// (python/sglang/benchmark/serving.py), trtllm-bench --report_json (tensorrt_llm/bench/dataclasses/
// reporting.py), AIPerf and genai-perf (profile_export_aiperf.json and _genai_perf.json), and
// llmperf's summary (token_benchmark_ray.py, whose inter-token latency contains the first token and
// is not read).
var layouts = []layout{
	{format: formatSGLang, is: "mean_e2e_latency_ms", requests: "completed",
		prompts: "total_input_tokens", outputs: "total_output_tokens", sums: true,
		rate: "request_rate", clients: "max_concurrency", throughput: "output_throughput",
		latency: "%[2]s_%[1]s_ms", names: [4]string{"ttft", "tpot", "itl", "e2e_latency"},
		stats: [4]string{"mean", "median", "p90", "p99"}, unit: 1e-3},
	{format: formatVLLM, is: "request_throughput", requests: "completed", sent: "num_prompts",
		failed: "failed", prompts: "total_input_tokens", outputs: "total_output_tokens", sums: true,
		rate: "request_rate", clients: "max_concurrency", throughput: "output_throughput",
		latency: "%[2]s_%[1]s_ms", names: [4]string{"ttft", "tpot", "itl", "e2el"},
		stats: [4]string{"mean", "median", "p90", "p99"}, unit: 1e-3},
	{format: formatTRTLLM, is: "performance.total_latency_ms", requests: "request_info.num_requests",
		prompts: "request_info.avg_input_length", outputs: "request_info.avg_output_length",
		clients:    "request_info.avg_num_concurrent_requests",
		throughput: "performance.system_output_throughput_tok_s", latency: "%s.%s",
		names: [4]string{"streaming_metrics.ttft_percentiles", "streaming_metrics.tpot_percentiles", "",
			"performance.request_latency_percentiles_ms"},
		stats: [4]string{"average", "p50", "p90", "p99"}, unit: 1e-3},
	{format: formatAIPerf, is: "request_latency.avg", requests: "request_count.avg",
		failed: "error_request_count.avg", prompts: "input_sequence_length.avg",
		outputs: "output_sequence_length.avg", rate: "input_config.loadgen.request_rate",
		clients: "input_config.loadgen.concurrency", throughput: "output_token_throughput.avg",
		latency: "%s.%s", names: [4]string{"time_to_first_token", "inter_token_latency", "",
			"request_latency"},
		stats: [4]string{"avg", "p50", "p90", "p99"}, unit: 1e-3},
	{format: formatLLMPerf, is: "results_num_completed_requests",
		requests: "results_num_completed_requests", failed: "results_number_errors",
		prompts: "results_number_input_tokens_mean", outputs: "results_number_output_tokens_mean",
		clients:    "num_concurrent_requests",
		throughput: "results_mean_output_throughput_token_per_s", latency: "results_%s_s_%s",
		names: [4]string{"ttft", "", "", "end_to_end_latency"},
		stats: [4]string{"mean", "quantiles_p50", "quantiles_p90", "quantiles_p99"}, unit: 1},
}

// layoutOf returns the layout of a result's aggregates; nil if none fits it.
func layoutOf(run rows.Record) *layout {
	for i := range layouts {
		if _, ok := number(run, layouts[i].is); ok {
			return &layouts[i]
		}
	}
	return nil
}

// number returns a number of a record; false if it has none of that name.
func number(rec rows.Record, name string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(rec.Text(name), 64)
	if name == "" || err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	return v, true
}

// readAggregates makes requests with the lengths and times of a result's load, and its figures.
func (m *Record) readAggregates(run rows.Record, a *layout) error {
	of := func(name string) float64 {
		v, _ := number(run, name)
		return v
	}
	m.Figures = map[string]float64{}
	for i, name := range a.names {
		for j, stat := range a.stats {
			if v, ok := number(run, fmt.Sprintf(a.latency, name, stat)); ok && name != "" && v > 0 {
				m.Figures[latencies[i]+"_"+statistics[j]+"_s"] = v * a.unit
			}
		}
	}
	if v, ok := number(run, a.throughput); ok {
		m.Figures["throughput_tok_s"] = v
	}
	n, prompts, outputs := of(a.requests), of(a.prompts), of(a.outputs)
	if a.sums {
		prompts, outputs = prompts/n, outputs/n
	}
	e2e, ok := m.Figures["e2e_mean_s"]
	if !ok {
		e2e = m.Figures["ttft_mean_s"] + m.Figures["tpot_mean_s"]*(outputs-1)
	}
	var missing []string
	keys := []string{a.requests, a.prompts, a.outputs, fmt.Sprintf(a.latency, a.names[0], a.stats[0])}
	for i, there := range []bool{n >= 1, prompts >= 1, outputs >= 1, e2e > 0} {
		if !there {
			missing = append(missing, keys[i])
		}
	}
	err := lacking("a result without requests is compared on its aggregates", missing...)
	if err != nil {
		return err
	}
	if n > mostAggregated || prompts > rows.MaxTokens || outputs > rows.MaxTokens || e2e > 1e6 {
		return rows.Wrong(a.requests, stats.Exact(n), fmt.Sprintf("with %g and %g tokens and %g s "+
			"each: beyond what a benchmark measures", prompts, outputs, e2e))
	}
	m.Failed = int(max(of(a.failed), of(a.sent)-n, 0))
	mostPrompt, mostOutput := of("random_input_len"), of("random_output_len")
	if !strings.HasPrefix(run.Text("dataset_name"), "random") || mostPrompt > rows.MaxTokens ||
		mostOutput > rows.MaxTokens {
		mostPrompt, mostOutput = 0, 0
	}
	l, err := loadOf(run)
	if err != nil {
		return err
	}
	if !a.sums {
		l = load{rate: limit(run, a.rate), clients: math.Round(limit(run, a.clients))}
		if l.rate == 0 && l.clients == 0 { // by Little's law
			l.clients = max(1, math.Round(e2e*m.Figures["throughput_tok_s"]/outputs))
		}
	}
	random := des.Rand(1, "record.lengths")
	took := make([]float64, int(n))
	for range took {
		m.Requests = append(m.Requests, Request{Prompt: around(random, prompts, mostPrompt),
			Output: around(random, outputs, mostOutput), TTFT: math.NaN(), E2E: math.NaN()})
	}
	for i := range took {
		took[i] = e2e * float64(m.Requests[i].Output) / outputs
	}
	for i, at := range l.times(took) {
		m.Requests[i].At = des.FromSeconds(at)
	}
	m.note("The record has aggregates alone. Its %d requests are made of the load that it names: %s, "+
		"%s prompt and %s output tokens.", len(took), &l, spread(prompts, mostPrompt),
		spread(outputs, mostOutput))
	return nil
}

// mostAggregated bounds the requests of a result.
const mostAggregated = 1e6

// around draws a length from a uniform distribution with a mean and a maximum; without a maximum it
// is the mean.
func around(random *rand.Rand, mean, most float64) int {
	if most <= mean {
		return int(math.Round(mean))
	}
	least := max(1, 2*mean-most)
	return int(math.Round(least + (most-least)*random.Float64()))
}

// spread describes the lengths of around.
func spread(mean, most float64) string {
	if most <= mean {
		return strconv.FormatFloat(math.Round(mean), 'f', 0, 64)
	}
	return fmt.Sprintf("%.0f to %.0f", max(1, 2*mean-most), most)
}
