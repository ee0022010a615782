package records

import (
	"bytes"
	"strings"
	"testing"
)

// A record that says what its prompts are is replayed with their content; without, with none.
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
