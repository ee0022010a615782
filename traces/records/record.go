package records

import (
	"io"
	"math"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces"
)

// A Record is the recording of a real server: its requests, their arrivals and their latencies.
// Requests are in order of arrival; the first arrives at 0.
type Record struct {
	Format   string // vllm | sglang | aiperf | genai-perf | llmperf | trtllm-bench | ...
	Requests []Request
	Failed   int // requests without a full answer, not in Requests
	// Figures are the aggregates of a record without requests, by the metric of a comparison, in
	// seconds and tokens/s. Requests are then made from its load, and have no latencies (NaN). nil if
	// the record has requests.
	Figures map[string]float64
	Notes   []string // sentences on made or estimated values
}

// Request is one request of a real server and what its client saw.
type Request struct {
	At     des.Time // since the first request of the record
	Prompt int      // tokens
	Output int      // tokens, at least 1
	TTFT   float64  // seconds from sending the request to its first token
	E2E    float64  // seconds from sending it to its last token; at least TTFT
	// Content is the prompt's content; nil if the record does not describe it.
	Content *prefix.Content
}

// Server returns the preset of the server that the record's client was made for; "": any.
func (m *Record) Server() string {
	if m.Format == formatSGLang {
		return formatSGLang
	}
	return ""
}

// Identified reports whether the record describes shared prompts.
func (m *Record) Identified() bool { return len(m.Requests) > 0 && m.Requests[0].Content != nil }

// TPOT returns the request's mean time between tokens in seconds, (E2E - TTFT) / (Output - 1); NaN
// for a single token.
func (s *Request) TPOT() float64 {
	if s.Output < 2 {
		return math.NaN()
	}
	return (s.E2E - s.TTFT) / float64(s.Output-1)
}

// WriteTrace writes the requests in the project's own CSV. A workload with arrivals = "trace"
// replays it.
func (m *Record) WriteTrace(w io.Writer) error {
	all := make([]sim.Arrival, len(m.Requests))
	for i, s := range m.Requests {
		all[i] = sim.Arrival{At: s.At, Prompt: s.Prompt, Output: s.Output, Content: s.Content}
	}
	return traces.Write(w, all)
}
