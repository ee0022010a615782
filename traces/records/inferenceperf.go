package records

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// inferencePerfEntry is an entry of per_request_lifecycle_metrics.json, which inference-perf
// (kubernetes-sigs) writes with report.request_lifecycle.per_request enabled
// (build_per_request_lifecycle_entry in inference_perf/reportgen/base.py, types in
// inference_perf/apis/base.py). Times are seconds on one clock. In older versions output_tokens and
// output_token_times are in info.
type inferencePerfEntry struct {
	Start *float64        `json:"start_time"`
	End   *float64        `json:"end_time"`
	Error json.RawMessage `json:"error"`
	Text  json.RawMessage `json:"request"` // request body
	Info  *struct {
		InputTokens int `json:"input_tokens"`
		inferencePerfTokens
		Response *inferencePerfTokens `json:"response_metrics"`
	} `json:"info"`
	Computed *struct {
		TTFT   *float64 `json:"time_to_first_token"`
		Input  int      `json:"input_tokens"`
		Output int      `json:"output_tokens"`
	} `json:"computed_metrics"` // of per_request_fields.computed_metrics
}

type inferencePerfTokens struct {
	Output int       `json:"output_tokens"` // counted by the client's tokenizer over the whole text
	Times  []float64 `json:"output_token_times"`
	Usage  *struct {
		Completion int `json:"completion_tokens"`
	} `json:"server_usage"`
}

func readInferencePerf(text []byte) ([]sent, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	all := make([]sent, len(entries))
	for i, raw := range entries {
		var e inferencePerfEntry
		where := fmt.Sprintf("[%d]", i)
		if keys := rows.Keys(raw); i == 0 &&
			!(slices.Contains(keys, "start_time") && slices.Contains(keys, "end_time")) {
			return nil, rows.Wrong("", string(raw[:min(len(raw), 60)]), known)
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, rows.Wrong(where, "", "not as inference-perf writes it: "+files.JSONWords(err))
		}
		err := required(where, "every entry of inference-perf has them",
			field{"start_time", e.Start != nil}, field{"end_time", e.End != nil})
		if err != nil {
			return nil, err
		}
		if len(e.Error) > 0 && string(e.Error) != "null" {
			all[i].failed = true
			continue
		}
		if all[i], err = e.request(where); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// request prefers the server's count of output tokens, because the client's tokenizer may count
// other tokens than the server's steps.
func (e *inferencePerfEntry) request(where string) (s sent, err error) {
	s.where = place{start: where + ".start_time", ttft: where + " time to first token", last: where +
		" end_time - start_time"}
	s.at, s.e2e, s.text = *e.Start, *e.End-*e.Start, textOf(e.Text)
	var first *float64
	if e.Info != nil {
		s.prompt = e.Info.InputTokens
		for _, t := range []*inferencePerfTokens{&e.Info.inferencePerfTokens, e.Info.Response} {
			if t == nil {
				continue
			}
			s.output = max(s.output, t.Output)
			if t.Usage != nil && t.Usage.Completion > 0 {
				s.output = t.Usage.Completion
			}
			if len(t.Times) > 0 {
				first = &t.Times[0]
			}
		}
	}
	if c := e.Computed; c != nil {
		if s.prompt == 0 {
			s.prompt = c.Input
		}
		if s.output == 0 {
			s.output = c.Output
		}
	}
	switch {
	case first != nil:
		s.ttft = *first - *e.Start
	case e.Computed != nil && e.Computed.TTFT != nil:
		first, s.ttft = e.Computed.TTFT, *e.Computed.TTFT
	}
	s.failed = s.output == 0
	return s, required(where, "record with streaming and with info in report.request_lifecycle."+
		"per_request", field{"output_token_times", first != nil || s.failed},
		field{"input_tokens", s.prompt > 0})
}
