package records

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// genAIPerf is genai-perf's profile_export.json (triton-inference-server/perf_analyzer,
// genai-perf/genai_perf/profile_data_parser): per experiment, requests with the times of their
// responses, in nanoseconds of one clock.
type genAIPerf struct {
	Experiments []struct {
		Requests []genAIPerfRequest `json:"requests"`
	} `json:"experiments"`
}

type genAIPerfRequest struct {
	At     json.Number `json:"timestamp"`
	Inputs struct {
		Payload string `json:"payload"`
	} `json:"request_inputs"`
	Times   []int64 `json:"response_timestamps"`
	Outputs []struct {
		Response string `json:"response"`
	} `json:"response_outputs"`
}

// genAIPerfChunk is a streamed part of an answer of an OpenAI-compatible server.
type genAIPerfChunk struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

// readGenAIPerf reads the requests. Where the server reports no usage, a chunk is a token and
// prompts are estimated from their texts.
func (m *Record) readGenAIPerf(text []byte) ([]sent, error) {
	var v genAIPerf
	if err := rows.Decode(text, &v); err != nil {
		return nil, err
	}
	var all []sent
	count, estimated := traces.CountTokens(traces.Llama3), 0
	for i, e := range v.Experiments {
		for j, r := range e.Requests {
			s, err := r.request()
			if err != nil {
				return nil, rows.Under(fmt.Sprintf("experiments[%d].requests[%d]", i, j), err)
			}
			if !s.failed && s.prompt == 0 {
				estimated++
				s.prompt = max(1, count(promptText(r.Inputs.Payload)))
			}
			all = append(all, s)
		}
	}
	if estimated > 0 {
		m.note("The server reported no usage of %d requests: their prompt tokens are estimated from the "+
			"texts, and a chunk of an answer counts as a token.", estimated)
	}
	return all, nil
}

func (r *genAIPerfRequest) request() (s sent, err error) {
	if len(r.Times) != len(r.Outputs) {
		return s, rows.Wrong("response_timestamps", fmt.Sprint(r.Times),
			fmt.Sprintf("has other entries than response_outputs, %d", len(r.Outputs)))
	}
	if s.at, err = rows.Time("timestamp", string(r.At), 1); err != nil {
		return s, err
	}
	s.text = r.Inputs.Payload
	var first, last duration
	chunks := 0
	for i, o := range r.Outputs {
		for line := range strings.SplitSeq(o.Response, "\n") {
			var c genAIPerfChunk
			if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) != nil {
				continue // the end mark, or an empty line
			}
			if u := c.Usage; u != nil {
				s.prompt, s.output = u.Prompt, u.Completion
			}
			if len(c.Choices) == 0 || c.Choices[0].Text+c.Choices[0].Delta.Content+
				c.Choices[0].Delta.Reasoning == "" {
				continue
			}
			last = duration{"response_timestamps", fmt.Sprint(r.Times[i]),
				(des.Time(r.Times[i]) - s.at).Seconds()}
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
	if s.prompt < 0 || s.prompt > rows.MaxTokens || s.output < 1 || s.output > rows.MaxTokens {
		return s, rows.Wrong("usage", fmt.Sprintf("%d and %d", s.prompt, s.output),
			fmt.Sprintf("prompt and output must each have 1 to %d tokens", rows.MaxTokens))
	}
	return s, s.took(first, last)
}
