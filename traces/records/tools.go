package records

import (
	"math"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A tool has the paths of a request's fields in a benchmark's record: paths in a JSON object, keys
// joined by dots and the first element of a list as 0, or columns of a CSV. a|b are alternatives,
// of which the first that is there counts.
type tool struct {
	format string
	is     string // names of which every request of this tool alone has one
	// times on the record's clock, in unit
	start, first, end string
	unit              des.Time
	// or durations from start; after counts from the first token. They are in ms if the name ends in
	// _ms, in the unit beside a value, and else in seconds.
	ttft, e2e, after string
	prompt, output   string // tokens
	failed           string // each marks a failed request, unless it is null, empty, false or 0
	warmup           string // a path with "warmup" leaves the request out
	partial          bool   // a request without output tokens failed
	none             string // written for a missing value
	text             string // top-level key of the prompt or request body
	advice           string // how to record missing fields
}

const streaming = "record with streaming, so that first tokens have a time"

const csvColumns = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s"

// tools are the tools whose records are requests, in sequence or in a list. A record in CSV may
// have other columns, in any order; a failed request has no output tokens, and an optional column
// prompt_id or content describes shared prompts (identity). The others are:
//
//   - LMBenchmark's multi-round-qa.py, whose CSV has the further names
//   - AIPerf's profile_export.jsonl (ai-dynamo/aiperf), each metric a value with a unit; its
//     results leave out the warm-up
//   - trtllm-bench --request_json (RequestRecord in
//     tensorrt_llm/bench/dataclasses/statistics.py)
//   - llmperf's X_individual_responses.json (ray-project/llmperf, src/llmperf/common_metrics.py),
//     which has no times; X_summary.json has the number of clients
//   - per_request_lifecycle_metrics.json of inference-perf (kubernetes-sigs, build_per_request_
//     lifecycle_entry in inference_perf/reportgen/base.py), by
//     report.request_lifecycle.per_request.
//     The server's count of output tokens is preferred, because the client's tokenizer may count
//     other tokens than the server's steps. In older versions they are in info.
var tools = []tool{
	{format: formatCSV, is: "ttft_s|ttft|e2e_s", start: "arrival_s|arrived_s|launch_time",
		unit: des.Second, prompt: "prompt_tokens", output: "output_tokens|generation_tokens",
		ttft: "ttft_s|ttft", e2e: "e2e_s", after: "generation_time", advice: "a record in CSV has " +
			csvColumns + "; 0 output_tokens mark a failed request"},
	{format: formatAIPerf, is: "metrics", start: "metadata.request_start_ns", unit: 1,
		ttft: "metrics.time_to_first_token.value", e2e: "metrics.request_latency.value",
		prompt: "metrics.input_sequence_length.value", output: "metrics.output_sequence_length.value",
		failed: "error|metadata.was_cancelled", warmup: "metadata.benchmark_phase", advice: streaming},
	{format: formatTRTLLM, is: "num_input_tokens", start: "start_timestamp", unit: 1,
		first: "first_token_timestamp", end: "end_timestamp", prompt: "num_input_tokens",
		output: "output_tokens", failed: "error_tokens", partial: true, none: "-1", advice: streaming},
	{format: formatLLMPerf, is: "number_input_tokens", ttft: "ttft_s", e2e: "end_to_end_latency_s",
		prompt: "number_input_tokens", output: "number_output_tokens", failed: "error_code"},
	{format: formatInferencePerf, is: "end_time", start: "start_time", end: "end_time",
		unit: des.Second, ttft: "computed_metrics.time_to_first_token",
		first:  "info.response_metrics.output_token_times.0|info.output_token_times.0",
		prompt: "info.input_tokens|computed_metrics.input_tokens",
		output: "info.response_metrics.server_usage.completion_tokens|" +
			"info.server_usage.completion_tokens|info.response_metrics.output_tokens|" +
			"info.output_tokens|computed_metrics.output_tokens",
		failed: "error", partial: true, text: "request",
		advice: "record with streaming and with info in report.request_lifecycle.per_request"},
}

// guideLLM are the requests of guidellm's benchmarks.json (vllm-project, GenerativeRequestStats in
// src/guidellm/schemas/request_stats.py; before 0.4 start_time was the first time). Times are
// seconds since 1970, so the consecutive benchmarks of a file share one clock.
var guideLLM = tool{format: formatGuideLLM, start: "request_start_time|start_time",
	unit: des.Second, ttft: "time_to_first_token_ms", e2e: "request_latency",
	prompt: "prompt_tokens", output: "output_tokens", text: "request_args|prompt",
	advice: "record with streaming, against a server that counts tokens"}

// find is rows.Find without values that stand for none.
func (t *tool) find(rec rows.Record, names string) (name, text string) {
	if name, text = rows.Find(rec, names); text == t.none {
		text = ""
	}
	return name, text
}

// lacks returns an error that names the missing fields of a request and how to record them, or nil.
func (t *tool) lacks(rec rows.Record) error {
	var missing []string
	for _, alternatives := range []string{t.start, t.prompt, t.output, t.first + "|" + t.ttft,
		t.end + "|" + t.e2e + "|" + t.after} {
		alternatives = strings.Trim(alternatives, "|")
		if path, text := t.find(rec, alternatives); text == "" && path != "" {
			missing = append(missing, path)
		}
	}
	return lacking(t.advice, missing...)
}

// lacking returns the error for missing fields; nil without any.
func lacking(advice string, missing ...string) error {
	if len(missing) == 0 {
		return nil
	}
	return rows.Wrong("", "", "lacks "+strings.Join(missing, ", ")+"; "+advice)
}

// sent is a request as recorded, at a time on the record's clock.
type sent struct {
	Request
	failed bool   // the other fields are unused
	text   string // prompt or request body
}

// request reads a request.
func (t *tool) request(rec rows.Record) (s sent, err error) {
	for path := range strings.SplitSeq(t.failed, "|") {
		switch rec.Text(path) {
		case "", "0", "false":
		default:
			return sent{failed: true}, nil
		}
	}
	output, text := t.find(rec, t.output)
	if text == "" && t.partial {
		return sent{failed: true}, nil
	}
	if text != "" {
		if s.Output, err = rows.Tokens(output, text, 0); err != nil || s.Output == 0 {
			return sent{failed: true}, err
		}
	}
	if err := t.lacks(rec); err != nil {
		return s, err
	}
	prompt, text := t.find(rec, t.prompt)
	if s.Prompt, err = rows.Tokens(prompt, text, 1); err != nil {
		return s, err
	}
	if start, text := t.find(rec, t.start); start != "" {
		if s.At, err = rows.Time(start, text, t.unit); err != nil {
			return s, err
		}
	}
	ttft, err := t.since(rec, s.At, t.first, t.ttft)
	if err != nil {
		return s, err
	}
	e2e, err := t.since(rec, s.At, t.end, t.e2e+"|"+t.after)
	if err != nil {
		return s, err
	}
	if e2e.key == t.after {
		e2e.seconds += ttft.seconds
	}
	if t.text != "" {
		_, s.text = rows.Find(rec, t.text)
	}
	return s, s.took(ttft, e2e)
}

// duration is a time from the start of a request, as its key has it.
type duration struct {
	key, text string
	seconds   float64
}

// since reads the time from at to a time on the record's clock, or a duration.
func (t *tool) since(rec rows.Record, at des.Time, clock, durations string) (d duration,
	err error) {
	if d.key, d.text = t.find(rec, clock); d.text != "" {
		then, err := rows.Time(d.key, d.text, t.unit)
		d.seconds = (then - at).Seconds()
		return d, err
	}
	d.key, d.text = t.find(rec, strings.Trim(durations, "|"))
	unit, known := units["s"], true
	if value, ok := strings.CutSuffix(d.key, ".value"); ok {
		if unit, known = units[rec.Text(value+".unit")]; !known {
			return d, rows.Wrong(value+".unit", rec.Text(value+".unit"),
				"unknown; known are ns, us, ms and s")
		}
	} else if strings.HasSuffix(d.key, "_ms") {
		unit = units["ms"]
	}
	return d, d.parse(unit)
}

// parse sets the seconds from a number in a unit, which is in seconds; a missing one is 0.
func (d *duration) parse(unit float64) error {
	v, err := strconv.ParseFloat(d.text, 64)
	if err != nil && !math.IsInf(v, 0) && d.text != "" {
		return rows.Wrong(d.key, d.text, "not a time in numbers")
	}
	d.seconds = v * unit
	return nil
}

// units are the units of durations, in seconds.
var units = map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1}

// slack is the tolerance of e2e below ttft, in seconds: both are differences of times since 1970,
// or rounded to microseconds.
const slack = 2e-6

// took sets the latencies of an answered request; an error names one that cannot be.
func (s *sent) took(ttft, e2e duration) error {
	for _, d := range []duration{ttft, e2e} {
		switch {
		case math.IsNaN(d.seconds) || math.IsInf(d.seconds, 0):
			return rows.Wrong(d.key, d.text, "not a finite number of seconds")
		case d.seconds < 0:
			return rows.Wrong(d.key, d.text, "before the request was sent; times run forward")
		case d.seconds > rows.Latest.Seconds():
			return rows.Wrong(d.key, d.text, "later than 285 years; is the unit right?")
		}
	}
	switch {
	case ttft.seconds == 0:
		return rows.Wrong(ttft.key, ttft.text, "no time to the first token; "+streaming)
	case e2e.seconds < ttft.seconds-slack:
		return rows.Wrong(e2e.key, e2e.text, "the last token comes before the first, which took "+
			stats.Exact(ttft.seconds)+" s")
	}
	s.TTFT, s.E2E = ttft.seconds, max(e2e.seconds, ttft.seconds)
	return nil
}
