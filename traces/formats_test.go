package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// replayed serves a trace with answers of no duration and returns its requests without content, in
// order of arrival, with the warnings.
func replayed(t *testing.T, file string) (all []sim.Arrival, warnings []warn.Warning) {
	t.Helper()
	s := DefaultSpec()
	s.Trace, s.Requests, s.Tokenizer = filepath.Join("testdata", file), 0, string(Llama3)
	has, err := s.Traits()
	if err != nil {
		t.Fatal(err)
	}
	if s.Arrivals, s.Rate = ArrivalsTrace, 0; !has.Timed {
		s.Arrivals, s.Rate = ArrivalsFixed, 1
	}
	stream, err := Open(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for a, err := range stream.All() {
		if err != nil {
			t.Fatal(err)
		}
		a.Content = nil
		all = append(all, a)
	}
	return all, stream.Warnings()
}

// Formats of other projects, each with the requests of a small file.
func TestFormatsOfOthers(t *testing.T) {
	ms := des.Millisecond
	for _, c := range []struct {
		file, format string
		want         []sim.Arrival
		warn         string
	}{
		{"servegen.csv", FormatServeGen, []sim.Arrival{{Prompt: 812, Output: 95},
			{At: 320 * ms, Prompt: 2411, Output: 312}, {At: 1490 * ms, Prompt: 97, Output: 18}}, ""},
		{"splitwise.csv", FormatSplitwise, []sim.Arrival{{Prompt: 1712, Output: 21},
			{At: 19 * ms, Prompt: 410, Output: 7}}, ""},
		{"servesim.jsonl", FormatServeSim, []sim.Arrival{{Prompt: 20, Output: 5},
			{At: 500 * ms, Prompt: 10, Output: 7}}, ""},
		// a tool takes 250 ms between two requests
		{"servesim_agents.jsonl", FormatServeSim, []sim.Arrival{
			{Prompt: 80, Output: 9, Session: "r3"}, {At: ms, Prompt: 1472, Output: 133, Session: "task-1"},
			{At: 251 * ms, Prompt: 1700, Output: 25, Session: "task-1"}}, ""},
		// r3 was received 1.5 s after the end of r1
		{"dynamo.jsonl", FormatDynamo, []sim.Arrival{{Prompt: 128, Output: 30, Session: "a"},
			{At: 1500 * ms, Prompt: 200, Output: 12, Session: "a"},
			{At: 1500 * ms, Prompt: 100, Output: 9, Session: "b"}},
			"1 row left out that no service answered; 1 value left out without a request"},
		{"mooncake_sessions.jsonl", FormatMooncake, []sim.Arrival{
			{Prompt: 64, Output: 11, Session: "s2"}, {At: 100 * ms, Prompt: 100, Output: 10, Session: "s1"},
			{At: 400 * ms, Prompt: 130, Output: 12, Session: "s1"},
			{At: 500 * ms, Prompt: 128, Output: 13, Session: "s2"}}, ""},
		{"aiperf.jsonl", FormatMultiTurn, []sim.Arrival{
			{At: 1000 * ms, Prompt: 12, Output: 20, Session: "s1"},
			{At: 2000 * ms, Prompt: 10, Output: 8, Session: "c2"},
			{At: 2500 * ms, Prompt: 37, Output: 15, Session: "s1"}},
			"1 of 3 requests have images"},
		{"vllm_custom.jsonl", FormatCustom, []sim.Arrival{
			{At: 1000 * ms, Prompt: 11, Output: 120}, {At: 2000 * ms, Prompt: 11, Output: 90},
			{At: 3000 * ms, Prompt: 3, Output: 6}}, "estimated"},
	} {
		_, format, err := openOnce(filepath.Join("testdata", c.file), "", Llama3)
		if err != nil || format != c.format {
			t.Errorf("%s: %s, %v, want %s", c.file, format, err, c.format)
		}
		got, warnings := replayed(t, c.file)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.file, got, c.want)
		}
		said := ""
		for _, w := range warnings {
			said += w.Text + "\n"
		}
		for part := range strings.SplitSeq(c.warn, "; ") {
			if !strings.Contains(said, part) || c.warn == "" && said != "" {
				t.Errorf("%s: warnings %q, want %q", c.file, said, part)
			}
		}
	}
}

// Prompts of these files share their beginnings.
func TestFormatsShareContent(t *testing.T) {
	for file, want := range map[string]int{"dynamo.jsonl": 192, "servesim.jsonl": 8,
		"mooncake_sessions.jsonl": 228, "vllm_custom.jsonl": 10, "aiperf.jsonl": 31} {
		d, err := Describe(t.Context(), filepath.Join("testdata", file), "",
			KV{Tokenizer: Llama3, BlockTokens: 1, TokenBytes: 1})
		if err != nil || d.Prefix == nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if hits := d.Prefix.Unbounded.Tokens; hits != int64(want) {
			t.Errorf("%s: %d tokens of prompts are shared, want %d", file, hits, want)
		}
	}
}

// Rows of Qwen-Bailian come at their own times and name the conversation that they continue.
func TestConversationsOfBailian(t *testing.T) {
	const row = `{"chat_id": %d, "parent_chat_id": %d, "timestamp": %d, "input_length": 9, ` +
		`"output_length": 2, "type": "text", "turn": 1}` + "\n"
	text := ""
	for i, parent := range []int{-1, -1, 10, 77, 12} {
		text += fmt.Sprintf(row, 10+i, parent, i)
	}
	src, _, err := sourceOf("f", text, wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(src)
	if err != nil || len(all) != 5 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []string{"chat10", "chat11", "chat10", "chat13", "chat10"} {
		if all[i].Session != want || all[i].At != des.Time(i)*des.Second {
			t.Errorf("row %d: %+v, want conversation %s", i, all[i], want)
		}
	}
}

func TestBadFormatsOfOthers(t *testing.T) {
	text := func(file string) string {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ text, old, replacement, want string }{
		{text("dynamo.jsonl"), `size":64,"input_length":128`, `size":32,"input_length":128`,
			`f:2: trace_block_size = "32": was 64 above`},
		{text("dynamo.jsonl"), "[18446744073709551001,8]", "[8]", "f:2: input_sequence_hashes"},
		{text("dynamo.jsonl"), "1780000001000", `"soon"`, "f:2: event.request.request_received_ms"},
		{text("mooncake_sessions.jsonl"), "[1, 2, 3]", "[1]", "f:3: hash_ids"},
		{text("mooncake_sessions.jsonl"), `"timestamp": 400`, `"delay": 4`, "f:2: timestamp"},
		{text("mooncake_sessions.jsonl"), `"delay": 250`, `"delay": -1`, "f:3: delay"},
		{text("servesim.jsonl"), `"arrival_time_ns": 1500000000`, `"sub_requests": [{"input_toks": 1, "output_toks": 1}]`,
			"f:2: sub_requests"},
		{text("aiperf.jsonl"), `, "output_length": 8`, "", "f:2: turns[0].output_length"},
		{text("vllm_custom.jsonl"), "Spell lake.", " ", "f:3: prompt"},
		{text("servegen.csv"), "2411", "many", "f:3: input_tokens"},
	} {
		src, _, err := sourceOf("f", strings.Replace(c.text, c.old, c.replacement, 1), wholeFile(""))
		if err == nil {
			_, err = readAll(src)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", c.replacement, err, c.want)
		}
	}
}

// Files as pandas, Excel and other tools write them are read as the plain ones.
func TestFilesOfOtherTools(t *testing.T) {
	want := []sim.Arrival{{Prompt: 10, Output: 5}, {At: des.Second / 2, Prompt: 20, Output: 6}}
	for name, text := range map[string]string{
		"columns in another order": "output_tokens,arrived_s,prompt_tokens\n5,1,10\n6,1.5,20\n",
		"an index, spaces, floats": ",arrived_s, prompt_tokens, output_tokens\n" +
			"0,1.0,10.0, 5\n1,1.5,20,6.0\n",
		"CRLF, a mark and blanks": "\ufeffarrived_s,prompt_tokens,output_tokens\r\n\r\n1,10,5\r\n" +
			"1.5,20,6\r\n\r\n",
		"calendar times": "arrived_s,prompt_tokens,output_tokens\n2024-05-01T12:00:00Z,10,5\n" +
			"2024-05-01T12:00:00.500Z,20,6\n",
		"tabs":       "input_toks\toutput_toks\tarrival_time_ns\n10\t5\t7\n20\t6\t500000007\n",
		"semicolons": "arrived_s;prompt_tokens;output_tokens\n1;10;5\n1.5;20;6\n",
		"objects": `{"arrived_s": 1, "prompt_tokens": 10, "output_tokens": 5}` + "\r\n\r\n" +
			`{"prompt_tokens": "20", "output_tokens": 6.0, "arrived_s": 1.5}`,
		"nulls": `[{"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": []},
			{"timestamp": 500, "input_length": 20, "output_length": 6, "hash_ids": null}]`,
		"a failed row": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,9,\n" +
			"2023-11-16 18:17:03,10,5\n2023-11-16 18:17:03.5,20,6\n",
	} {
		src, _, err := sourceOf("f", text, wholeFile(""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if all, err := readAll(src); err != nil || !slices.Equal(all, want) {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	if _, _, err := sourceOf("f", "\xff\xfea\x00", wholeFile("")); err == nil ||
		err.Error() != "f: text in UTF-16; save it as UTF-8" {
		t.Errorf("UTF-16: %v", err)
	}
}
