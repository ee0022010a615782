package records

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// guideLLM is the request part of benchmarks.json of guidellm (vllm-project):
// GenerativeBenchmark.requests, by status, with one GenerativeRequestStats per request
// (src/guidellm/schemas/request_stats.py). Before 0.4 the type was GenerativeTextResponseStats
// (src/guidellm/benchmark/benchmark.py), with start_time as the first time. Times are seconds since
// 1970, so the consecutive benchmarks of a file share one clock.
type guideLLM struct {
	Benchmarks []struct {
		Requests *struct {
			Successful []guideLLMRequest `json:"successful"`
			Incomplete []json.RawMessage `json:"incomplete"`
			Errored    []json.RawMessage `json:"errored"`
		} `json:"requests"`
		Totals *struct {
			Successful int `json:"successful"`
		} `json:"request_totals"`
	} `json:"benchmarks"`
}

type guideLLMRequest struct {
	Start    *float64 `json:"request_start_time"`
	OldStart *float64 `json:"start_time"`
	Latency  *float64 `json:"request_latency"` // seconds
	TTFT     *float64 `json:"time_to_first_token_ms"`
	Prompt   *int     `json:"prompt_tokens"`
	Output   *int     `json:"output_tokens"`
	// of the request to the server
	Args    json.RawMessage `json:"request_args"`
	OldArgs json.RawMessage `json:"prompt"`
}

func readGuideLLM(text []byte) ([]sent, error) {
	var v guideLLM
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	var all []sent
	for i, b := range v.Benchmarks {
		where := fmt.Sprintf("benchmarks[%d].requests", i)
		if b.Requests == nil {
			return nil, rows.Wrong(where, "", "missing; keep the requests in the output of guidellm")
		}
		done := b.Requests.Successful
		if b.Totals != nil && b.Totals.Successful > len(done) {
			return nil, rows.Wrong(where+".successful", "",
				fmt.Sprintf("has %d of %d requests; without the others the load is another: record without "+
					"sampling of requests", len(done), b.Totals.Successful))
		}
		for range len(b.Requests.Incomplete) + len(b.Requests.Errored) {
			all = append(all, sent{failed: true})
		}
		for j := range done {
			s, err := done[j].request(fmt.Sprintf("%s.successful[%d]", where, j))
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

func (r *guideLLMRequest) request(where string) (s sent, err error) {
	start, key := r.Start, ".request_start_time"
	if start == nil {
		start, key = r.OldStart, ".start_time"
	}
	err = required(where, "record with streaming, against a server that counts tokens",
		field{"request_start_time", start != nil}, field{"request_latency", r.Latency != nil},
		field{"time_to_first_token_ms", r.TTFT != nil}, field{"prompt_tokens", r.Prompt != nil},
		field{"output_tokens", r.Output != nil})
	if err != nil {
		return s, err
	}
	return sent{
		where: place{start: where + key, ttft: where + ".time_to_first_token_ms / 1000", last: where +
			".request_latency"},
		at: *start, prompt: *r.Prompt, output: *r.Output, ttft: *r.TTFT / 1000, e2e: *r.Latency,
		text: cmp.Or(textOf(r.Args), textOf(r.OldArgs)),
	}, nil
}
