package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/traces/reuse"
)

// A record that identifies its prompts is replayed with their content, otherwise without content.
func TestIdentity(t *testing.T) {
	const header = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s"
	for _, c := range []struct {
		name, column string
		cells        [3]string
		want         string // contents of the replayed trace, or the error
	}{
		{"ids", "prompt_id", [3]string{"a", "b", "a"}, "1:100|2:100|1:100"},
		{"content", "content", [3]string{"7:60 8:40", "7:60", "7:60 9:40 >4"},
			"7:60 8:40|7:60|7:60 9:40 >4"},
		{"none", "note", [3]string{"a", "b", "a"}, ""},
		{"a missing id", "prompt_id", [3]string{"a", "", "a"}, ":3: prompt_id: missing or empty"},
		{"bad content", "content", [3]string{"7:60", "7:600", "7:1"}, "goes beyond the prompt"},
	} {
		text := header + "," + c.column + "\n"
		for _, cell := range c.cells {
			text += "1,100,2,0.5,1," + cell + "\n"
		}
		m, err := readText(text)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || c.want == "" {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		var trace bytes.Buffer
		if err := m.WriteTrace(&trace); err != nil {
			t.Fatal(err)
		}
		var contents []string
		for line := range strings.Lines(trace.String()) {
			if f := strings.Split(strings.TrimSpace(line), ","); len(f) > 4 && f[4] != "content" {
				contents = append(contents, f[4])
			}
		}
		if got := strings.Join(contents, "|"); got != c.want || m.Identified() != (c.want != "") {
			t.Errorf("%s: contents %q, identified %v, want %q", c.name, got, m.Identified(), c.want)
		}
	}
	_, err := readText(header + ",prompt_id\n1,100,2,0.5,1,a\n1,101,2,0.5,1,a\n")
	if err == nil ||
		!strings.Contains(err.Error(), `f:3: prompt_id = "a": had 100 prompt tokens`) {
		t.Errorf("one id of two lengths: %v", err)
	}
}

// Prompts of JSON records share what their texts begin with, if each has one. Equal texts share
// all.
func TestTextsIdentify(t *testing.T) {
	system := strings.Repeat("You answer in one sentence. ", 40)
	long := strings.Repeat("Why? ", 100)
	body := func(text string) string {
		return fmt.Sprintf(`{"model": "m", "messages": [{"role": "user", "content": %q}]}`, text)
	}
	perf := func(request string, tokens int) string {
		text, _ := json.Marshal(request)
		return fmt.Sprintf(`{"start_time": 1, "end_time": 2, "error": null, "request": %s, "info": `+
			`{"input_tokens": %d, "output_tokens": 2, "output_token_times": [1.5, 2]}}`, text, tokens)
	}
	guide := func(request string, tokens int) string {
		args, _ := json.Marshal(fmt.Sprintf(`{"stream": true, "body": %s}`, request))
		return fmt.Sprintf(`{"request_start_time": 1, "request_latency": 1, "request_args": %s, `+
			`"time_to_first_token_ms": 500, "prompt_tokens": %d, "output_tokens": 2}`, args, tokens)
	}
	for name, c := range map[string]struct {
		entry      func(string, int) string
		begin, end string
	}{"inference-perf": {perf, "[", "]"},
		"guidellm": {guide, `{"benchmarks": [{"requests": {"successful": [`, "]}}]}"}} {
		same := system + long
		all := []string{c.entry(body(same), 400), c.entry(body(system+"No."), 290),
			c.entry(body("Other"+same), 401), c.entry(body(same), 400)}
		m, err := readText(c.begin + strings.Join(all, ",") + c.end)
		if err != nil || !m.Identified() {
			t.Fatalf("%s: %v", name, err)
		}
		stack := reuse.NewStack(1)
		var hits []int
		for _, r := range m.Requests {
			sum := 0
			for _, p := range r.Content.Prompt {
				sum += p.Tokens
			}
			if sum != r.Prompt {
				t.Errorf("%s: pieces of %d tokens, want %d", name, sum, r.Prompt)
			}
			hits = append(hits, stack.Serve(r.Content, r.Prompt, r.Output))
		}
		// of some 270 tokens of the system prompt; of 400 all but the last
		if hits[0] != 0 || hits[1] < 230 || hits[1] > 290 || hits[2] != 0 || hits[3] != 399 {
			t.Errorf("%s: hits of %d tokens", name, hits)
		}
		all[1] = c.entry("", 290)
		if name == "guidellm" {
			all[1] = strings.Replace(all[1], "request_args", "other", 1)
		}
		m, err = readText(c.begin + strings.Join(all, ",") + c.end)
		if err != nil || m.Identified() {
			t.Errorf("%s: one without text is identified: %v", name, err)
		}
	}
}
