package records

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// vllmResult is the result of vllm bench serve --save-result --save-detailed
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
type vllmResult struct {
	InputLens  []int       `json:"input_lens"`
	OutputLens []int       `json:"output_lens"`
	TTFTs      []float64   `json:"ttfts"`
	ITLs       [][]float64 `json:"itls"`
	StartTimes []float64   `json:"start_times"`
	Errors     []string    `json:"errors"`
	load
}

func (m *Record) readVLLM(text []byte) ([]sent, error) {
	var v vllmResult
	if err := rows.Decode(text, &v); err != nil {
		return nil, err
	}
	advice := "record with vllm bench serve --save-result --save-detailed"
	if m.Format == formatSGLang {
		advice = "record with --output-details"
	}
	n := len(v.InputLens)
	lists := []struct {
		key string
		len int
	}{
		{"input_lens", n}, {"output_lens", len(v.OutputLens)}, {"ttfts", len(v.TTFTs)},
		{"itls", len(v.ITLs)}, {"errors", len(v.Errors)}, {"start_times", len(v.StartTimes)},
	}
	timed := v.StartTimes != nil
	if !timed {
		lists = lists[:5]
	}
	var missing []string
	for _, l := range lists {
		if l.len == 0 {
			missing = append(missing, l.key)
		}
	}
	if n == 0 || len(missing) > 0 {
		return nil, lacking(advice, missing...)
	}
	for _, l := range lists {
		if l.len != n {
			return nil, rows.Wrong(l.key, "", fmt.Sprintf("has %d entries, input_lens has %d; each has one "+
				"a request", l.len, n))
		}
	}
	all, first := make([]sent, n), math.NaN()
	for i := range all {
		all[i].e2e = v.TTFTs[i]
		for _, gap := range v.ITLs[i] {
			all[i].e2e += gap
		}
		if all[i].failed = v.Errors[i] != "" || v.OutputLens[i] == 0; all[i].failed {
			continue
		}
		if err := v.request(&all[i], i); err != nil {
			return nil, err
		}
		if timed && !(v.StartTimes[i] >= first) {
			first = v.StartTimes[i]
		}
	}
	if !timed {
		m.made(v.load, all)
		return all, nil
	}
	for i := range all {
		all[i].at = des.FromSeconds(v.StartTimes[i] - first)
	}
	return all, nil
}

// request reads the i-th request, but for its time.
func (v *vllmResult) request(s *sent, i int) error {
	for _, gap := range v.ITLs[i] {
		if gap < 0 {
			return rows.Wrong(fmt.Sprintf("itls[%d]", i), rows.Decimals(gap), "negative; times run forward")
		}
	}
	if s.prompt, s.output = v.InputLens[i], v.OutputLens[i]; s.prompt < 1 ||
		s.prompt > rows.MaxTokens || s.output < 1 || s.output > rows.MaxTokens {
		return rows.Wrong(fmt.Sprintf("input_lens[%d] and output_lens[%[1]d]", i),
			fmt.Sprintf("%d and %d", s.prompt, s.output),
			fmt.Sprintf("prompt and output must each have 1 to %d tokens", rows.MaxTokens))
	}
	if v.StartTimes != nil && !(v.StartTimes[i] >= 0 && v.StartTimes[i] < rows.Latest.Seconds()) {
		return rows.Wrong(fmt.Sprintf("start_times[%d]", i), rows.Decimals(v.StartTimes[i]),
			"negative, or later than 285 years")
	}
	return s.took(duration{fmt.Sprintf("ttfts[%d]", i), rows.Decimals(v.TTFTs[i]), v.TTFTs[i]},
		duration{fmt.Sprintf("ttfts[%d] + sum(itls[%[1]d])", i), rows.Decimals(s.e2e), s.e2e})
}
