package records

import (
	"encoding/json"
	"fmt"

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

// isVLLM recognises a result with requests.
func isVLLM(keys map[string]json.RawMessage) bool {
	return keys["ttfts"] != nil || keys["itls"] != nil
}

func (m *Record) readVLLM(text []byte) ([]sent, error) {
	var v vllmResult
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	advice := "record with vllm bench serve --save-result --save-detailed"
	if m.Format == formatSGLang {
		advice = "record with --output-details"
	}
	if err := required("", advice,
		field{"input_lens", v.InputLens != nil}, field{"output_lens", v.OutputLens != nil},
		field{"ttfts", v.TTFTs != nil}, field{"itls", v.ITLs != nil},
		field{"errors", v.Errors != nil}); err != nil {
		return nil, err
	}
	timed := v.StartTimes != nil
	if !timed {
		v.StartTimes = make([]float64, len(v.InputLens))
	}
	all, err := v.requests()
	if err == nil && !timed {
		m.made(v.load, all, v.took())
	}
	return all, err
}

// took returns how long each request took in seconds; a failed one no time.
func (v *vllmResult) took() []float64 {
	all := make([]float64, len(v.InputLens))
	for i := range min(len(all), len(v.TTFTs), len(v.ITLs)) {
		all[i] = v.TTFTs[i]
		for _, gap := range v.ITLs[i] {
			all[i] += gap
		}
	}
	return all
}

func (v *vllmResult) requests() ([]sent, error) {
	n := len(v.InputLens)
	for _, l := range []struct {
		key string
		len int
	}{
		{"output_lens", len(v.OutputLens)}, {"ttfts", len(v.TTFTs)}, {"itls", len(v.ITLs)},
		{"start_times", len(v.StartTimes)}, {"errors", len(v.Errors)},
	} {
		if l.len != n {
			return nil, rows.Wrong(
				l.key, "", fmt.Sprintf("has %d entries, input_lens has %d; each has one a request", l.len, n))
		}
	}
	all, took := make([]sent, n), v.took()
	for i := range all {
		if v.Errors[i] != "" || v.OutputLens[i] == 0 {
			all[i].failed = true
			continue
		}
		for _, gap := range v.ITLs[i] {
			if gap < 0 {
				return nil, rows.Wrong(fmt.Sprintf("itls[%d]", i), rows.Decimals(gap),
					"negative; times run forward")
			}
		}
		all[i] = sent{
			where: place{start: fmt.Sprintf("start_times[%d]", i), ttft: fmt.Sprintf("ttfts[%d]", i),
				last: fmt.Sprintf("ttfts[%d] + sum(itls[%[1]d])", i)},
			at: v.StartTimes[i], prompt: v.InputLens[i], output: v.OutputLens[i],
			ttft: v.TTFTs[i], e2e: took[i],
		}
	}
	return all, nil
}
