package records

import (
	"encoding/json"
	"fmt"
	"strings"

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
	At     int64 `json:"timestamp"`
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
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	var all []sent
	count, estimated := traces.CountTokens(traces.Llama3), 0
	for i, e := range v.Experiments {
		for j, r := range e.Requests {
			s, err := r.request(fmt.Sprintf("experiments[%d].requests[%d]", i, j))
			if err != nil {
				return nil, err
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

func (r *genAIPerfRequest) request(where string) (s sent, err error) {
	if len(r.Times) != len(r.Outputs) {
		return s, rows.Wrong(where+".response_timestamps", fmt.Sprint(r.Times),
			fmt.Sprintf("has other entries than response_outputs, %d", len(r.Outputs)))
	}
	s = sent{where: place{start: where + ".timestamp", ttft: where + ".response_timestamps[0]",
		last: where + ".response_timestamps"}, text: r.Inputs.Payload, at: float64(r.At)/1e9 + leadS}
	chunks := 0
	for i, o := range r.Outputs {
		for _, line := range strings.Split(o.Response, "\n") {
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
			s.e2e = float64(r.Times[i]-r.At) / 1e9
			if chunks++; chunks == 1 {
				s.ttft = s.e2e
			}
		}
	}
	if s.output == 0 {
		s.output = chunks
	}
	s.failed = chunks == 0
	return s, nil
}
