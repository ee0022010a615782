package records

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// readGenAIPerf reads genai-perf's profile_export.json (triton-inference-server/perf_analyzer,
// genai-perf/genai_perf/profile_data_parser): per experiment, requests with the times of their
// responses, in nanoseconds of one clock. Where the server reports no usage, a chunk is a token and
// prompts are estimated from their texts.
func (m *Record) readGenAIPerf(run *rows.Object) (all []sent, err error) {
	count, estimated := traces.CountTokens(traces.Llama3), 0
	experiments, err := run.Objects("experiments")
	for i, e := range experiments {
		requests, err := e.Objects("requests")
		if err != nil {
			return nil, rows.Under(fmt.Sprintf("experiments[%d]", i), err)
		}
		for j, r := range requests {
			s, err := chunked(r)
			if err != nil {
				return nil, rows.Under(fmt.Sprintf("experiments[%d].requests[%d]", i, j), err)
			}
			if !s.failed && s.prompt == 0 {
				estimated++
				s.prompt = max(1, count(promptText(s.text)))
			}
			all = append(all, s)
		}
	}
	if estimated > 0 {
		m.note("The server reported no usage of %d requests: their prompt tokens are estimated from the "+
			"texts, and a chunk of an answer counts as a token.", estimated)
	}
	return all, err
}

// chunked reads a request with the streamed chunks of its answer, as an OpenAI-compatible server
// sends them.
func chunked(r *rows.Object) (s sent, err error) {
	times := r.List("response_timestamps")
	outputs, err := r.Objects("response_outputs")
	if err != nil {
		return s, err
	}
	if len(times) != len(outputs) {
		return s, rows.Wrong("response_timestamps", r.Text("response_timestamps"),
			fmt.Sprintf("has other entries than response_outputs, %d", len(outputs)))
	}
	if s.at, err = rows.Time("timestamp", r.Text("timestamp"), 1); err != nil {
		return s, err
	}
	s.text = r.Text("request_inputs.payload")
	var first, last duration
	chunks := 0
	for i, o := range outputs {
		for line := range strings.SplitSeq(o.Text("response"), "\n") {
			c, err := rows.NewObject([]byte(strings.TrimPrefix(line, "data: ")))
			if err != nil {
				continue // the end mark, or an empty line
			}
			for key, into := range map[string]*int{"prompt_tokens": &s.prompt,
				"completion_tokens": &s.output} {
				if text := c.Text("usage." + key); text != "" {
					if *into, err = rows.Tokens("usage."+key, text, 0); err != nil {
						return s, err
					}
				}
			}
			if c.Text("choices.0.text")+c.Text("choices.0.delta.content")+
				c.Text("choices.0.delta.reasoning_content") == "" {
				continue
			}
			last = duration{key: "response_timestamps", text: rows.TextOf(times[i])}
			at, err := rows.Time(last.key, last.text, 1)
			if err != nil {
				return s, err
			}
			last.seconds = (at - s.at).Seconds()
			if chunks++; chunks == 1 {
				first = last
			}
		}
	}
	if chunks == 0 {
		return sent{failed: true}, nil
	}
	if s.output == 0 {
		s.output = chunks
	}
	return s, s.took(first, last)
}
