package records

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Three answered requests and one that failed, as in record_test.go.
const (
	asGenAIPerf = `{"service_kind": "openai", "experiments": [{"experiment": {"mode": "concurrency",
		"value": 2}, "requests": [
		{"timestamp": 1010000000000, "request_inputs": {"payload":
			"{\"messages\":[{\"role\":\"user\",\"content\":\"one two three\"}]}"},
		 "response_timestamps": [1010125000000, 1010300000000, 1010500000000, 1010510000000],
		 "response_outputs": [{"response": "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"},
			{"response": "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n"},
			{"response": "data: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n"},
			{"response": "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":200,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n"}]},
		{"timestamp": 1010200000000, "response_timestamps": [1010300000000],
		 "response_outputs": [{"response": "data: [DONE]"}]},
		{"timestamp": 1010500000000, "request_inputs": {"payload": "{\"prompt\":\"four words are here\"}"},
		 "response_timestamps": [1010750000000, 1011750000000],
		 "response_outputs": [{"response": "{\"choices\":[{\"text\":\"a\"}]}"},
			{"response": "{\"choices\":[{\"text\":\"b\"}]}"}]}]}]}`
	asTRTLLM = `[
		{"id": 0, "num_input_tokens": 200, "error_tokens": 0, "start_timestamp": 1010000000000,
		 "first_token_timestamp": 1010125000000, "end_timestamp": 1010500000000, "output_tokens": 4},
		{"id": 1, "num_input_tokens": 100, "error_tokens": 3, "start_timestamp": 1010500000000,
		 "first_token_timestamp": -1, "end_timestamp": 1010500000001, "output_tokens": 0},
		{"id": 2, "num_input_tokens": 100, "error_tokens": 0, "start_timestamp": 1010500000000,
		 "first_token_timestamp": 1010750000000, "end_timestamp": 1011750000000, "output_tokens": 11}]`
	asLLMPerf = `[
		{"error_code": null, "error_msg": "", "ttft_s": 0.125, "end_to_end_latency_s": 0.5,
		 "number_input_tokens": 200, "number_output_tokens": 4},
		{"error_code": 503, "error_msg": "busy", "ttft_s": 0, "end_to_end_latency_s": 0,
		 "number_input_tokens": 200, "number_output_tokens": 0},
		{"error_code": null, "error_msg": "", "ttft_s": 0.25, "end_to_end_latency_s": 1.25,
		 "number_input_tokens": 100, "number_output_tokens": 11}]`
)

func TestTools(t *testing.T) {
	first := Request{Prompt: 200, Output: 4, TTFT: 0.125, E2E: 0.5}
	second := Request{At: des.Second / 2, Prompt: 100, Output: 11, TTFT: 0.25, E2E: 1.25}
	m, err := readText(asTRTLLM)
	if err != nil || m.Format != formatTRTLLM || m.Failed != 1 ||
		!slices.Equal(m.Requests, []Request{first, second}) {
		t.Errorf("%+v, %v", m, err)
	}
	// A request without the server's usage has an estimated prompt and a token a chunk.
	m, err = readText(asGenAIPerf)
	if err != nil || m.Format != formatGenAIPerf || m.Failed != 1 || len(m.Requests) != 2 ||
		!strings.Contains(strings.Join(m.Notes, ""), "usage of 1 requests") {
		t.Fatalf("%+v, %v", m, err)
	}
	one, two := m.Requests[0], m.Requests[1]
	if one.Prompt != 200 || one.Output != 4 || one.TTFT != 0.125 || one.E2E != 0.5 ||
		two.At != des.Second/2 || two.Prompt < 4 || two.Prompt > 8 || two.Output != 2 ||
		two.TTFT != 0.25 || two.E2E != 1.25 || one.Content == nil {
		t.Errorf("%+v and %+v", one, two)
	}
	for _, c := range [][2]string{
		{strings.Replace(asTRTLLM, "1010125000000", "-1", 1), "[0]: lacks first_token_timestamp"},
		{strings.Replace(asGenAIPerf, "[1010300000000]", "[]", 1), "requests[1].response_timestamps"},
		{strings.Replace(asTRTLLM, "200", `"x"`, 1), `f:2: [0].num_input_tokens = "x"`},
		{asLLMPerf, "lacks num_concurrent_requests; llmperf writes it into f_summary.json"},
	} {
		if _, err := readText(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("error %v, want %q", err, c[1])
		}
	}
}

// llmperf's requests have no times: they come from the clients of the summary beside them.
func TestLLMPerf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("m_550_150_individual_responses.json", asLLMPerf)
	write("m_550_150_summary.json", `{"num_concurrent_requests": 1}`)
	m, err := Read(path)
	want := []Request{{Prompt: 200, Output: 4, TTFT: 0.125, E2E: 0.5},
		{At: des.Second / 2, Prompt: 100, Output: 11, TTFT: 0.25, E2E: 1.25}}
	if err != nil || m.Format != formatLLMPerf || m.Failed != 1 || !slices.Equal(m.Requests, want) ||
		!strings.Contains(m.Notes[0], "1 requests at a time") {
		t.Errorf("%+v, %v", m, err)
	}
	write("m_550_150_summary.json", `{"num_concurrent_requests"`)
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "m_550_150_summary.json: ") {
		t.Errorf("error %v", err)
	}
}
