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
	err = run.Each("experiments", func(e *rows.Object) error {
		return e.Each("requests", func(r *rows.Object) error {
			s, err := chunked(r)
			if !s.failed && s.Prompt == 0 {
				estimated++
				s.Prompt = max(1, count(promptText(s.text)))
			}
			all = append(all, s)
			return err
		})
	})
	if estimated > 0 {
		m.note("The server reported no usage of %d requests: their prompt tokens are estimated from the "+
			"texts, and a chunk of an answer counts as a token.", estimated)
	}
	return all, err
}

// chunked reads a request with the streamed chunks of its answer, as an OpenAI-compatible server
// sends them.
func chunked(r *rows.Object) (s sent, err error) {
	times, outputs := r.List("response_timestamps"), r.List("response_outputs")
	if len(times) != len(outputs) {
		return s, rows.Wrong("response_timestamps", r.Text("response_timestamps"),
			fmt.Sprintf("has other entries than response_outputs, %d", len(outputs)))
	}
	if s.At, err = rows.Time("timestamp", r.Text("timestamp"), 1); err != nil {
		return s, err
	}
	s.text = r.Text("request_inputs.payload")
	var first, last duration
	chunks, i := 0, 0
	err = r.Each("response_outputs", func(o *rows.Object) error {
		now := duration{key: "response_timestamps", text: rows.TextOf(times[i])}
		i++
		for line := range strings.SplitSeq(o.Text("response"), "\n") {
			c, err := rows.NewObject([]byte(strings.TrimPrefix(line, "data: ")))
			if err != nil {
				continue // the end mark, or an empty line
			}
			for key, into := range map[string]*int{"prompt_tokens": &s.Prompt,
				"completion_tokens": &s.Output} {
				if text := c.Text("usage." + key); text != "" {
					if *into, err = rows.Tokens("usage."+key, text, 0); err != nil {
						return err
					}
				}
			}
			if c.Text("choices.0.text")+c.Text("choices.0.delta.content")+
				c.Text("choices.0.delta.reasoning_content") == "" {
				continue
			}
			at, err := rows.Time(now.key, now.text, 1)
			if err != nil {
				return err
			}
			now.seconds = (at - s.At).Seconds()
			if last = now; chunks == 0 {
				first = now
			}
			chunks++
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	if chunks == 0 {
		return sent{failed: true}, nil
	}
	if s.Output == 0 {
		s.Output = chunks
	}
	return s, s.took(first, last)
}
