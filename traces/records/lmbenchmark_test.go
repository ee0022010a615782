package records

import (
	"os"
	"path/filepath"
	"testing"
)

// LMBenchmark's CSV: times since 1970 in any order, and the time of an answer from its first token.
func TestLMBenchmark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary.csv")
	text := "prompt_tokens,generation_tokens,ttft,generation_time,user_id,question_id,launch_time," +
		"finish_time\n900,100,0.5,1.5,2,1,1700000003.25,1700000005.25\n" +
		"800,50,0.25,0.75,1,1,1700000001.25,1700000002.25\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Read(path)
	if err != nil || len(m.Requests) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	first, second := m.Requests[0], m.Requests[1]
	if first.Prompt != 800 || first.E2E != 1 || second.At.Seconds() != 2 || second.TTFT != 0.5 ||
		second.E2E != 2 || second.Output != 100 {
		t.Errorf("%+v, %+v", first, second)
	}
}
