package records

import (
	"encoding/json"
	"fmt"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// vllmResult is the result of vllm bench serve --save-result --save-detailed
// (vllm/benchmarks/serve.py): one JSON object with lists. Each list has one entry per request in
// sending order, including failed requests.
//
//	input_lens   prompt tokens
//	output_lens  output tokens; 0 for a failed request
//	ttfts        seconds
//	itls         list per request: seconds between the chunks of the answer
//	start_times  seconds on the client's monotonic clock
//	errors       text; empty for an answered request
//
// A request's latency is not in the file. It is ttft + sum(itl), as in the file's own timeline.
// start_times exist since pull request 32667 of January 2026, released in 0.15.
type vllmResult struct {
	InputLens  []int       `json:"input_lens"`
	OutputLens []int       `json:"output_lens"`
	TTFTs      []float64   `json:"ttfts"`
	ITLs       [][]float64 `json:"itls"`
	StartTimes []float64   `json:"start_times"`
	Errors     []string    `json:"errors"`
}

// isVLLM recognises a result by keys that exist with and without --save-detailed.
func isVLLM(keys map[string]json.RawMessage) bool {
	return keys["ttfts"] != nil || keys["itls"] != nil ||
		keys["request_throughput"] != nil && keys["total_input_tokens"] != nil
}

func readVLLM(text []byte) ([]sent, error) {
	var v vllmResult
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	err := required("", "record with vllm bench serve --save-result --save-detailed",
		field{"input_lens", v.InputLens != nil}, field{"output_lens", v.OutputLens != nil},
		field{"ttfts", v.TTFTs != nil}, field{"itls", v.ITLs != nil},
		field{"errors", v.Errors != nil})
	if err == nil {
		err = required("", "when each request was sent; vllm bench serve --save-detailed records them "+
			"from vLLM 0.15 on", field{"start_times", v.StartTimes != nil})
	}
	if err != nil {
		return nil, err
	}
	return v.requests()
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
	all := make([]sent, n)
	for i := range all {
		if v.Errors[i] != "" || v.OutputLens[i] == 0 {
			all[i].failed = true
			continue
		}
		e2e := v.TTFTs[i]
		for _, gap := range v.ITLs[i] {
			if gap < 0 {
				return nil, rows.Wrong(fmt.Sprintf("itls[%d]", i), rows.Decimals(gap),
					"negative; times run forward")
			}
			e2e += gap
		}
		all[i] = sent{
			where: place{start: fmt.Sprintf("start_times[%d]", i), ttft: fmt.Sprintf("ttfts[%d]", i),
				last: fmt.Sprintf("ttfts[%d] + sum(itls[%[1]d])", i)},
			at: v.StartTimes[i], prompt: v.InputLens[i], output: v.OutputLens[i], ttft: v.TTFTs[i], e2e: e2e,
		}
	}
	return all, nil
}
