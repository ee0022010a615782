package records

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// readVLLM reads the result of vllm bench serve --save-result --save-detailed
// (vllm/benchmarks/serve.py) and of SGLang's bench_serving --output-details: one JSON object with
// lists. Each list has one entry per request in sending order, including failed requests.
//
//	input_lens   prompt tokens
//	output_lens  output tokens; 0 for a failed request
//	ttfts        seconds
//	itls         list per request: seconds between the chunks of the answer
//	start_times  seconds on the client's monotonic clock; not in SGLang's results
//	errors       text; empty for an answered request
//
// A request's latency is not in the file. It is ttft + sum(itl), as in the file's own timeline.
// start_times exist since pull request 32667 of January 2026, released in vLLM 0.15. Without them
// times are made from the load that the result names.
func (m *Record) readVLLM(run *rows.Object) ([]sent, error) {
	advice := "record with vllm bench serve --save-result --save-detailed"
	if m.Format == formatSGLang {
		advice = "record with --output-details"
	}
	lists, missing := map[string][]jsontext.Value{}, []string(nil)
	keys := []string{"input_lens", "output_lens", "ttfts", "itls", "errors", "start_times"}
	timed := run.Text("start_times") != ""
	if !timed {
		keys = keys[:5]
	}
	for _, key := range keys {
		if lists[key] = run.List(key); len(lists[key]) == 0 {
			missing = append(missing, key)
		}
	}
	if missing != nil {
		return nil, lacking(advice, missing...)
	}
	all := make([]sent, len(lists["input_lens"]))
	for _, key := range keys {
		if n := len(lists[key]); n != len(all) {
			return nil, rows.Wrong(key, "", fmt.Sprintf("has %d entries, input_lens has %d; each has one "+
				"a request", n, len(all)))
		}
	}
	starts, first := make([]float64, len(all)), math.NaN()
	for i := range all {
		s, of := &all[i], func(key string) duration {
			return duration{key: fmt.Sprintf("%s[%d]", key, i), text: rows.TextOf(lists[key][i])}
		}
		ttft, output := of("ttfts"), of("output_lens")
		err := ttft.parse(1)
		if err == nil && output.text != "" {
			s.Output, err = rows.Tokens(output.key, output.text, 0)
		}
		if err != nil {
			return nil, err
		}
		if kind := lists["errors"][i].Kind(); kind != '"' && kind != 'n' {
			return nil, rows.Wrong(of("errors").key, of("errors").text, "want a text, empty for no error")
		}
		s.failed = of("errors").text != "" || s.Output == 0
		e2e := duration{key: fmt.Sprintf("ttfts[%d] + sum(itls[%[1]d])", i), seconds: ttft.seconds}
		for _, raw := range rows.Elements(lists["itls"][i]) {
			gap := of("itls")
			gap.text = rows.TextOf(raw)
			if err := gap.parse(1); err != nil {
				return nil, err
			}
			if gap.seconds < 0 && !s.failed {
				return nil, rows.Wrong(gap.key, gap.text, "negative; times run forward")
			}
			e2e.seconds += gap.seconds
		}
		s.E2E, e2e.text = e2e.seconds, stats.Exact(e2e.seconds)
		if s.failed {
			continue
		}
		prompt := of("input_lens")
		if s.Prompt, err = rows.Tokens(prompt.key, prompt.text, 1); err != nil {
			return nil, err
		}
		if timed {
			start := of("start_times")
			if err := start.parse(1); err != nil {
				return nil, err
			}
			if starts[i] = start.seconds; !(starts[i] >= 0 && starts[i] < rows.Latest.Seconds()) {
				return nil, rows.Wrong(start.key, start.text, "negative, or later than 285 years")
			}
			if !(starts[i] >= first) {
				first = starts[i]
			}
		}
		if err := s.took(ttft, e2e); err != nil {
			return nil, err
		}
	}
	if !timed {
		l, err := loadOf(run)
		if err != nil {
			return nil, err
		}
		m.made(l, all)
		return all, nil
	}
	for i := range all {
		all[i].At = des.FromSeconds(starts[i] - first)
	}
	return all, nil
}
