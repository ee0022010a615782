package records

import (
	"encoding/json"
	"fmt"
)

// trtLLMRequest is an entry of trtllm-bench --request_json (RequestRecord in
// tensorrt_llm/bench/dataclasses/statistics.py). Times are nanoseconds of one clock; -1 is none.
type trtLLMRequest struct {
	Prompt int   `json:"num_input_tokens"`
	Output int   `json:"output_tokens"`
	Errors int   `json:"error_tokens"`
	Start  int64 `json:"start_timestamp"`
	First  int64 `json:"first_token_timestamp"`
	End    int64 `json:"end_timestamp"`
}

func readTRTLLM(text []byte) ([]sent, error) {
	var entries []trtLLMRequest
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	all := make([]sent, len(entries))
	for i, e := range entries {
		where := fmt.Sprintf("[%d]", i)
		if e.Errors > 0 || e.End <= 0 || e.Output == 0 {
			all[i].failed = true
			continue
		}
		if err := required(where, "record with --streaming, so that first tokens have a time",
			field{"first_token_timestamp", e.First > 0}); err != nil {
			return nil, err
		}
		all[i] = sent{where: place{start: where + ".start_timestamp",
			ttft: where + ".first_token_timestamp", last: where + ".end_timestamp"},
			at: float64(e.Start) / 1e9, prompt: e.Prompt, output: e.Output,
			ttft: float64(e.First-e.Start) / 1e9, e2e: float64(e.End-e.Start) / 1e9}
	}
	return all, nil
}
