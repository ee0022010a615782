package records

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// llmPerfRequest is an entry of llmperf's X_individual_responses.json (ray-project/llmperf,
// src/llmperf/common_metrics.py). It has no time; X_summary.json has the number of clients.
type llmPerfRequest struct {
	Prompt int             `json:"number_input_tokens"`
	Output int             `json:"number_output_tokens"`
	TTFT   float64         `json:"ttft_s"`
	E2E    float64         `json:"end_to_end_latency_s"`
	Code   json.RawMessage `json:"error_code"`
}

// Ends of the names of llmperf's two files.
const (
	llmPerfRequests = "_individual_responses.json"
	llmPerfSummary  = "_summary.json"
)

// readLLMPerf reads the requests of a file, and the clients from the file beside it.
func (m *Record) readLLMPerf(name string, text []byte) ([]sent, error) {
	var entries []llmPerfRequest
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	var l struct {
		Clients limit `json:"num_concurrent_requests"`
	}
	beside := strings.TrimSuffix(name, llmPerfRequests) + llmPerfSummary
	if beside != name+llmPerfSummary {
		if summary, err := files.ReadText(beside); err == nil {
			if err := json.Unmarshal(summary, &l); err != nil {
				return nil, fmt.Errorf("%s: %s", beside, files.JSONWords(err))
			}
		}
	}
	if l.Clients == 0 {
		return nil, required("", "llmperf writes it into "+filepath.Base(beside)+": put that file "+
			"beside this one, which ends in "+llmPerfRequests, field{"num_concurrent_requests", false})
	}
	all, took := make([]sent, len(entries)), make([]float64, len(entries))
	for i, e := range entries {
		where := fmt.Sprintf("[%d]", i)
		all[i] = sent{where: place{start: where, ttft: where + ".ttft_s",
			last: where + ".end_to_end_latency_s"}, prompt: e.Prompt, output: e.Output, ttft: e.TTFT,
			e2e: e.E2E, failed: len(e.Code) > 0 && string(e.Code) != "null"}
		took[i] = e.E2E
	}
	m.made(load{Clients: l.Clients}, all, took)
	return all, nil
}
