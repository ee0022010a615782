package records

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// Results without requests, as each tool writes them: 20 answered requests of 300 and 50 tokens.
const (
	asVLLMTotals = `{"backend": "vllm", "num_prompts": 22, "request_rate": "inf", "burstiness": 1.0,
		"max_concurrency": 4, "duration": 10, "completed": 20, "failed": 2, "total_input_tokens": 6000,
		"total_output_tokens": 1000, "request_throughput": 2.0, "output_throughput": 100.0,
		"mean_ttft_ms": 100, "median_ttft_ms": 90, "p99_ttft_ms": 300, "mean_tpot_ms": 10,
		"mean_itl_ms": 11, "std_tpot_ms": 1}`
	asSGLangTotals = `{"backend": "sglang", "dataset_name": "random", "request_rate": 4.0,
		"max_concurrency": null, "random_input_len": 500, "random_output_len": 80, "duration": 10,
		"completed": 20, "total_input_tokens": 6000, "total_output_tokens": 1000,
		"request_throughput": 2.0, "output_throughput": 100.0, "mean_e2e_latency_ms": 590,
		"mean_ttft_ms": 100, "median_ttft_ms": 90, "p99_ttft_ms": 300, "mean_tpot_ms": 10,
		"mean_itl_ms": 11}`
	asTRTTotals = `{"engine": {"version": "1.2"}, "world_info": {"tp_size": 1}, "request_info":
		{"num_requests": 20, "avg_num_concurrent_requests": 3.9, "avg_input_length": 300.0,
		"avg_output_length": 50.0}, "performance": {"total_latency_ms": 10000.0,
		"system_output_throughput_tok_s": 100.0, "request_latency_percentiles_ms": {"average": 590}},
		"streaming_metrics": {"ttft_percentiles": {"average": 100, "p50": 90, "p99": 300},
		"tpot_percentiles": {"average": 10}}}`
	asAIPerfTotals = `{"request_count": {"unit": "requests", "avg": 20}, "error_request_count":
		{"avg": 2}, "request_latency": {"unit": "ms", "avg": 590}, "input_sequence_length":
		{"avg": 300}, "output_sequence_length": {"avg": 50}, "output_token_throughput": {"avg": 100},
		"time_to_first_token": {"avg": 100, "p50": 90, "p99": 300}, "inter_token_latency": {"avg": 10}}`
	asLLMPerfTotals = `{"version": "2023-08-31", "num_concurrent_requests": 4,
		"results_ttft_s_mean": 0.1, "results_ttft_s_quantiles_p50": 0.09,
		"results_ttft_s_quantiles_p99": 0.3, "results_end_to_end_latency_s_mean": 0.59,
		"results_number_input_tokens_mean": 300.0, "results_number_output_tokens_mean": 50.0,
		"results_number_errors": 2, "results_mean_output_throughput_token_per_s": 100,
		"results_num_completed_requests": 20, "results_inter_token_latency_s_mean": 0.0118}`
)

func TestAggregates(t *testing.T) {
	all := map[string]float64{"ttft_mean_s": 0.1, "ttft_p50_s": 0.09, "ttft_p99_s": 0.3,
		"tpot_mean_s": 0.01, "tbt_mean_s": 0.011, "e2e_mean_s": 0.59, "throughput_tok_s": 100}
	for _, c := range []struct {
		format, text string
		without      string // figures that it lacks
		failed       int
		load         string
	}{
		{formatVLLM, asVLLMTotals, "e2e_mean_s", 2, "4 requests at a time, 300 prompt and 50 output"},
		{formatSGLang, asSGLangTotals, "", 0,
			"Poisson arrivals at 4 requests/s, changed to 2 requests/s by the measured duration, " +
				"100 to 500 prompt and 20 to 80 output"},
		{formatTRTLLM, asTRTTotals, "tbt_mean_s", 0, "4 requests at a time, 300 prompt and 50 output"},
		{formatAIPerf, asAIPerfTotals, "tbt_mean_s", 2, "1 requests at a time, 300 prompt and 50"},
		{formatLLMPerf, asLLMPerfTotals, "tpot_mean_s tbt_mean_s", 2, "4 requests at a time, 300"},
	} {
		m, err := readText(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.format, err)
		}
		want := maps.Clone(all)
		for _, key := range strings.Fields(c.without) {
			delete(want, key)
		}
		same := maps.EqualFunc(m.Figures, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if m.Format != c.format || len(m.Requests) != 20 || m.Failed != c.failed || !same ||
			!strings.Contains(m.Notes[0], c.load) {
			t.Errorf("%s: %s, %d requests, %d failed, %v, %q", c.format, m.Format, len(m.Requests),
				m.Failed, m.Figures, m.Notes)
		}
		for i, r := range m.Requests {
			if r.Prompt < 100 || r.Prompt > 500 || r.Output < 20 || r.Output > 80 ||
				i > 0 && r.At < m.Requests[i-1].At {
				t.Errorf("%s: request %d is %+v", c.format, i, r)
			}
		}
	}
	for _, c := range [][2]string{
		{strings.Replace(asVLLMTotals, "completed", "done", 1), "lacks completed"},
		{strings.Replace(asTRTTotals, "avg_output_length", "x", 1), "avg_output_length"},
		{strings.NewReplacer("mean_ttft_ms", "x", "mean_tpot_ms", "y").Replace(asVLLMTotals),
			"lacks mean_ttft_ms"},
		{strings.Replace(asVLLMTotals, `"total_input_tokens": 6000`, `"total_input_tokens": 1e30`,
			1), "beyond what"},
	} {
		if _, err := readText(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("error %v, want %q", err, c[1])
		}
	}
}

// The lengths of a random load have the mean of the result, and are the same in each reading.
func TestAggregatesAreDrawnOnce(t *testing.T) {
	one, err := readText(asSGLangTotals)
	if err != nil {
		t.Fatal(err)
	}
	two, err := readText(asSGLangTotals)
	if err != nil {
		t.Fatal(err)
	}
	lengths := func(m *Record) (all []int) {
		for _, r := range m.Requests {
			all = append(all, r.Prompt, r.Output)
		}
		return all
	}
	if !slices.Equal(lengths(one), lengths(two)) || one.Requests[1].Prompt == one.Requests[2].Prompt {
		t.Errorf("%v and %v", lengths(one), lengths(two))
	}
}

// Of the runs that a tool has appended to one file the last is read, and a note says so.
func TestRuns(t *testing.T) {
	inf := strings.Replace(asSGLangTotals, "4.0", "Infinity", 1)
	for _, c := range []struct {
		text, load string
		line       int
	}{
		{inf + "\r\n\r\n" + asSGLangTotals, "Poisson arrivals at 4 requests/s", 8},
		{asSGLangTotals + "\n" + strings.ReplaceAll(inf, "\n", ""), "all requests sent at once", 7},
		{"[" + inf + ",\n" + asSGLangTotals + "]", "Poisson arrivals at 4 requests/s", 7},
		{asVLLM + strings.ReplaceAll(inf, "100,", "NaN,"), "all requests sent at once", 4},
	} {
		m, err := readText(c.text)
		if err != nil || m.Format != formatSGLang || len(m.Notes) != 2 ||
			!strings.Contains(m.Notes[0], fmt.Sprintf("has 2 runs. The last, of line %d,", c.line)) ||
			!strings.Contains(m.Notes[1], c.load) {
			t.Errorf("%+v, %v, want line %d, %s", m, err, c.line, c.load)
		}
	}
	if _, err := readText(asSGLangTotals + "\n" + asSGLangTotals[:40]); err == nil ||
		!strings.HasPrefix(err.Error(), "f:7: not valid JSON: ") {
		t.Errorf("a run that is cut short: %v", err)
	}
}

// Loads that no benchmark has neither panic nor make requests that cannot be.
func TestLoadsThatCannotBe(t *testing.T) {
	for _, text := range []string{
		strings.Replace(asTRTTotals, "3.9", "-1", 1),
		strings.Replace(asVLLMTotals, `"max_concurrency": 4`, `"max_concurrency": 0.5`, 1),
		strings.Replace(asSGLangTotals, `"random_output_len": 80`, `"random_output_len": 1e20`, 1),
	} {
		m, err := readText(text)
		if err != nil || len(m.Requests) != 20 {
			t.Fatalf("%+v, %v", m, err)
		}
		for _, r := range m.Requests {
			if r.At < 0 || r.Output < 1 || r.Output > 1000 {
				t.Errorf("%q: %+v", text, r)
			}
		}
	}
}
