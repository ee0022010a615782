package records

import (
	"encoding/json"
	"io"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// aiPerfEntry is a line of AIPerf's profile_export.jsonl (github.com/ai-dynamo/aiperf): one request
// with its metrics, each a value with a unit.
type aiPerfEntry struct {
	Metadata struct {
		Start     *int64 `json:"request_start_ns"` // on the client's clock
		Phase     string `json:"benchmark_phase"`  // AIPerf's results leave out warmup
		Cancelled bool   `json:"was_cancelled"`
	} `json:"metadata"`
	Metrics map[string]struct {
		Value json.RawMessage `json:"value"`
		Unit  string          `json:"unit"`
	} `json:"metrics"`
	Error json.RawMessage `json:"error"`
}

// isAIPerf recognises a line by its two objects.
func isAIPerf(keys map[string]json.RawMessage) bool {
	return keys["metadata"] != nil && keys["metrics"] != nil
}

func readAIPerf(f *rows.File) (all []sent, err error) {
	values := rows.NewValues(f)
	var first int64
	for {
		raw, err := values.Next()
		if err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		var e aiPerfEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, values.Fault(rows.Wrong("", "", "not as AIPerf writes it: "+files.JSONWords(err)))
		}
		if e.Metadata.Phase == "warmup" {
			continue
		}
		s, err := e.request()
		if err != nil {
			return nil, values.Fault(err)
		}
		if !s.failed {
			if first == 0 {
				first = *e.Metadata.Start
			}
			// Times since 1970 in ns exceed a float's precision.
			s.at = float64(*e.Metadata.Start-first)/1e9 + leadS
		}
		s.where.line = values.Line()
		all = append(all, s)
	}
}

// leadS keeps times positive of requests that began before the first line's.
const leadS = 1e6

func (e *aiPerfEntry) request() (s sent, err error) {
	if e.Metadata.Cancelled || len(e.Error) > 0 && string(e.Error) != "null" {
		return sent{failed: true}, nil
	}
	need := []string{"input_sequence_length", "output_sequence_length", "time_to_first_token",
		"request_latency"}
	fields := []field{{"metadata.request_start_ns", e.Metadata.Start != nil}}
	for _, key := range need {
		fields = append(fields, field{"metrics." + key, e.Metrics[key].Value != nil})
	}
	if err := required("", "record with --streaming, so that first tokens have a time",
		fields...); err != nil {
		return s, err
	}
	values := make([]float64, len(need))
	for i, key := range need {
		if values[i], err = e.value(key); err != nil {
			return s, err
		}
	}
	return sent{where: place{start: "request_start_ns", ttft: "time_to_first_token",
		last: "request_latency"}, prompt: int(values[0]), output: int(values[1]), ttft: values[2],
		e2e: values[3]}, nil
}

// units are AIPerf's units of the metrics that are read, as factors to tokens and seconds.
var units = map[string]float64{"tokens": 1, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1}

func (e *aiPerfEntry) value(key string) (v float64, err error) {
	m := e.Metrics[key]
	factor, ok := units[m.Unit]
	if !ok {
		return 0, rows.Wrong(key+".unit", m.Unit, "unknown; known are tokens, ns, us, ms and s")
	}
	if err := json.Unmarshal(m.Value, &v); err != nil {
		return 0, rows.Wrong(key+".value", string(m.Value), "no number")
	}
	return factor * v, nil
}
