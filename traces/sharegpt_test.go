package traces

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// Both styles are the same conversations: a turn an answer, its prompt all that is before it.
func TestShareGPT(t *testing.T) {
	var each [2][]sim.Arrival
	for i, file := range []string{"testdata/sharegpt.json", "testdata/sharegpt.jsonl"} {
		s := open(t, 1, func(s *Spec) { s.Trace, s.Requests, s.ThinkS = file, 0, 3 })
		each[i] = all(t, s)
		w := warn.Texts(s.Warnings())
		line := map[int]string{0: "line 31", 1: "line 2"}[i]
		if len(w) != 2 || !strings.Contains(w[0], "llama2 prompt tokens are estimated") ||
			!strings.Contains(w[1], "1 value left out without a request, such as a question") ||
			!strings.HasSuffix(w[1], line) {
			t.Errorf("%s: %q", file, w)
		}
	}
	for i := range each[0] {
		if a, b := each[0][i], each[1][i]; !reflect.DeepEqual(a, b) {
			t.Errorf("request %d: %+v and %+v", i, a, b)
		}
	}
	of := map[string][]sim.Arrival{}
	for _, a := range each[0] {
		of[a.Session] = append(of[a.Session], a)
	}
	if len(of["c1"]) != 2 || len(of["c3"]) != 1 || len(of["c4"]) != 1 || len(each[0]) != 4 {
		t.Fatalf("%+v", each[0])
	}
	first, second := of["c1"][0], of["c1"][1]
	// 8 words and 8, 1.774093 tokens each; then 10 and 2
	if first.Prompt != 28 || first.Output != 18 || second.Prompt != 28+18+4 || second.Output != 9 {
		t.Errorf("%+v\n%+v", first, second)
	}
	if n := len(second.Content.Prompt); n != 4 || second.Content.Prompt[2].ID != first.Content.Answer {
		t.Errorf("%+v after %+v", second.Content, first.Content)
	}
	if other := of["c4"][0]; other.Content.Prompt[0] != first.Content.Prompt[0] {
		t.Errorf("equal system prompts are %+v and %+v", first.Content.Prompt[0], other.Content.Prompt[0])
	}
	// an answer without a question, 4 words; 12 characters of 1.430002 and a mark; 4 and a mark
	if c := of["c3"][0]; c.Prompt != 7+19 || c.Output != 7 || len(c.Content.Prompt) != 2 {
		t.Errorf("%+v %+v", c, c.Content)
	}
}

// Described and converted, each turn is a request.
func TestShareGPTIsConverted(t *testing.T) {
	const path = "testdata/sharegpt.json"
	d, err := Describe(t.Context(), path, "", KV{})
	if err != nil || d.Requests != 4 || d.Gap != nil || d.Format != FormatShareGPT {
		t.Errorf("%+v, %v", d, err)
	}
	if n := Count(Spec{Trace: path}); n != 4 {
		t.Errorf("%d requests are counted, want 4", n)
	}
	var out strings.Builder
	_, lost, err := ConvertTo(t.Context(), &out, path, "")
	if err != nil || len(lost) != 3 ||
		!strings.Contains(lost[2].Text, "do not wait for their answers") {
		t.Errorf("%q, %v", lost, err)
	}
	src, _, err := sourceOf("out.csv", out.String(), wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	again, err := readAll(src)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := openTrace(path, wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	turns, err := readAll(want)
	if err != nil || !reflect.DeepEqual(again, turns) {
		t.Errorf("%+v\n%+v, %v", again, turns, err)
	}
}

func TestBadShareGPT(t *testing.T) {
	const good = `{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}`
	for name, c := range map[string]struct {
		text       string
		line       int
		key, value string // as the error has them
	}{
		"no array's end":  {"[" + good + ",\n" + good, 2, "", ""},
		"ends in a comma": {"[" + good + ",\n", 2, "", ""},
		"half of one":     {"[\n" + good + ",\n" + good[:40], 3, "", ""},
		"no comma":        {"[\n" + good + "\n" + good + "]", 3, "", ""},
		"no conversation": {"[" + good + ",\n7]", 2, "[1]", "7"},
		"another key":     {"[" + good + ",\n{\"turns\": []}]", 2, "[1].conversations", ""},
		"no list": {
			"[" + good + ",\n{\"conversations\": 7}]", 2, "[1].conversations", "7"},
		"no text": {
			good + "\n{\"conversations\": [{\"from\": \"human\",\n\"value\": 7}]}", 2,
			"conversations[0].value", "7"},
		"nobody": {
			good + "\n{\"conversations\": [{\"from\": \"cat\", \"value\": \"miaow\"}]}", 2,
			"conversations[0].from", "cat"},
		"nobody in messages": {
			good + "\n{\"messages\": [{\"content\": \"miaow\"}]}", 2, "messages[0].from", ""},
		"after an array":              {"[" + good + "]\n\ngarbage", 3, "", ""},
		"after an array, on its line": {"[" + good + ",\n" + good + "] garbage", 2, "", ""},
		"another bracket":             {"[\n" + good + "\n]\n]", 4, "", ""},
		"a number after an array":     {"[" + good + "]\n7", 2, "", "7"},
		"an array in one":             {"[" + good + ",\n[" + good + "]]", 2, "[1]", "*"},
		"no second array's end":       {"[" + good + "]\n[" + good, 2, "", ""},
		"a fault far below": {
			"[\n" + strings.Repeat(good+"\n,\n", 50) + "{\"messages\":\n!}]", 103, "", ""},
		"no conversations": {"[]", 0, "", ""},
		"none answered": {
			"[\n{\"conversations\": []}, {\"conversations\": []}]", 2, "conversations", ""},
	} {
		src, _, err := sourceOf("f", c.text, wholeFile(""))
		if err == nil {
			_, err = readAll(src)
		}
		wantLineError(t, name, err, c.line, c.key, c.value)
	}
}

// Arrays and conversations may follow each other in any order.
func TestShareGPTGoesOn(t *testing.T) {
	const good = `{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}`
	for _, text := range []string{
		"[" + good + "]\n[" + good + "]", "[" + good + "]\n" + good, good + "\n[" + good + "]\n",
		good + "\n" + good + good, "[][" + good + "] [ ]\n\n[\n" + good + "\n]",
	} {
		src, _, err := sourceOf("f", text, wholeFile(""))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := readAll(src); err != nil || len(all) != 2+strings.Count(text, "}{") {
			t.Errorf("%q: %d requests, %v, want 2", text, len(all), err)
		}
	}
}

// What is beyond the requests asked for is said.
func TestShareGPTBeyond(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests = "testdata/sharegpt.json", 2 })
	if n := len(all(t, s)); n != 2 {
		t.Fatalf("%d requests, want 2", n)
	}
	w := strings.Join(warn.Texts(s.Warnings()), "\n")
	if !strings.Contains(w, "left out beyond workload.requests = 2") {
		t.Errorf("%q", w)
	}
}

// A text in parts is one text; parts without text are images. Messages without a text, such as the
// calls of tools, are left out.
func TestShareGPTOfParts(t *testing.T) {
	src, _, err := sourceOf("f", `{"messages": [{"role": "developer", "content": "be brief"},
		{"role": "user", "content": [{"type": "text", "text": "one two"}, {"type": "image_url"}]},
		{"role": "assistant", "content": null, "tool_calls": []}, {"role": "tool", "content": "42"},
		{"role": "assistant", "content": "it is 42"}]}`, wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(src)
	if err != nil || len(all) != 1 || len(all[0].Content.Prompt) != 3 {
		t.Fatalf("%+v, %v, want a prompt of three texts", all, err)
	}
	w := strings.Join(warn.Texts(src.warnings()), "\n")
	if !strings.Contains(w, "1 of 1 request have images") {
		t.Errorf("%q", w)
	}
}
