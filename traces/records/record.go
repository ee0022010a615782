package records

import (
	"io"
	"math"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces"
)

// A Record is the record of a real server: which requests arrived, when, and how long each
// took. Requests are in order of arrival; the first arrives at 0.
type Record struct {
	Format   string // vllm | inference-perf | guidellm | csv
	Requests []Request
	Failed   int // requests of the record that were never answered in full, left out
}

// Request is one request of a real server and what its client saw.
type Request struct {
	At     des.Time // since the first request of the record
	Prompt int      // tokens
	Output int      // tokens, at least 1
	TTFT   float64  // seconds from sending the request to its first token
	E2E    float64  // seconds from sending it to its last token; at least TTFT
	// Content is what the prompt consists of; nil where the record does not say it.
	Content *prefix.Content
}

// Identified reports whether the record says what its prompts have in common.
func (m *Record) Identified() bool { return len(m.Requests) > 0 && m.Requests[0].Content != nil }

// TPOT is the mean time between the tokens of the request in seconds, (E2E - TTFT) / (Output -
// 1); NaN of a single token, which has none after it.
func (s *Request) TPOT() float64 { return MeanTPOT(s.TTFT, s.E2E, s.Output) }

// MeanTPOT is the mean time between the tokens of one request.
func MeanTPOT(ttft, e2e float64, output int) float64 {
	if output < 2 {
		return math.NaN()
	}
	return (e2e - ttft) / float64(output-1)
}

// WriteTrace writes the requests in the project's own CSV, so that a workload with arrivals =
// "trace" replays them.
func (m *Record) WriteTrace(w io.Writer) error {
	all := make([]sim.Arrival, len(m.Requests))
	for i, s := range m.Requests {
		all[i] = sim.Arrival{At: s.At, Prompt: s.Prompt, Output: s.Output, Content: s.Content}
	}
	return traces.Write(w, all)
}
