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
			!strings.Contains(w[1], "1 conversation left out without a question and its answer") ||
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
	// an answer to nobody, 4 words; 12 characters of 1.430002 and a mark; 4 and a mark
	if c := of["c3"][0]; c.Prompt != 7+19 || c.Output != 7 || len(c.Content.Prompt) != 2 {
		t.Errorf("%+v %+v", c, c.Content)
	}
}

// Described and converted, each turn is a request.
func TestShareGPTIsConverted(t *testing.T) {
	const path = "testdata/sharegpt.json"
	d, err := Describe(t.Context(), path, "")
	if err != nil || d.Requests != 4 || d.Gap != nil || d.Format != FormatShareGPT {
		t.Errorf("%+v, %v", d, err)
	}
	if n := Count(Spec{Trace: path}); n != 4 {
		t.Errorf("%d requests are counted, want 4", n)
	}
	var out strings.Builder
	lost, err := ConvertTo(t.Context(), &out, path, "")
	if err != nil || len(lost) != 3 ||
		!strings.Contains(lost[2].Text, "do not wait for their answers") {
		t.Errorf("%q, %v", lost, err)
	}
	src, _, err := newSource("out.csv", strings.NewReader(out.String()), wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	again, err := readAll(src)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := openPath(path, wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	turns, err := readAll(unfold(want))
	if err != nil || !reflect.DeepEqual(again, turns) {
		t.Errorf("%+v\n%+v, %v", again, turns, err)
	}
}

func TestBadShareGPT(t *testing.T) {
	const good = `{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no array's end":  {"[" + good + ",\n" + good, []string{"f:2:", "cut short"}},
		"ends in a comma": {"[" + good + ",\n", []string{"f:2:", "cut short"}},
		"half of one":     {"[\n" + good + ",\n" + good[:40], []string{"f:3:", "cut short"}},
		"no comma":        {"[\n" + good + "\n" + good + "]", []string{"f:3:", "not valid JSON"}},
		"no conversation": {"[" + good + ",\n7]", []string{"f:2:", "not a JSON object"}},
		"another key":     {"[" + good + ",\n{\"turns\": []}]", []string{"f:2: conversations: missing"}},
		"no list": {"[" + good + ",\n{\"conversations\": 7}]",
			[]string{`f:2: conversations = "number": wrong type; a list is needed`}},
		"no text": {good + "\n{\"conversations\": [{\"from\": \"human\",\n\"value\": 7}]}",
			[]string{"f:3: conversations", "wrong type; a string is needed"}},
		"nobody": {good + "\n{\"conversations\": [{\"from\": \"cat\", \"value\": \"miaow\"}]}",
			[]string{`f:2: from = "cat": of message 1: whose is it?`}},
		"nobody in messages": {good + "\n{\"messages\": [{\"content\": \"miaow\"}]}",
			[]string{"f:2: from: missing of message 1"}},
		"after an array": {"[" + good + "]\n\ngarbage", []string{"f:3: not valid JSON"}},
		"after an array, on its line": {"[" + good + ",\n" + good + "] garbage",
			[]string{"f:2: not valid JSON"}},
		"another bracket":         {"[\n" + good + "\n]\n]", []string{"f:4: not valid JSON"}},
		"a number after an array": {"[" + good + "]\n7", []string{"f:2:", "not a JSON object"}},
		"an array in one": {"[" + good + ",\n[" + good + "]]",
			[]string{"f:2:", "not a JSON object"}},
		"no second array's end": {"[" + good + "]\n[" + good, []string{"f:2:", "cut short"}},
		"a fault far below": {"[\n" + strings.Repeat(good+"\n,\n", 50) + "{\"messages\":\n!}]",
			[]string{"f:103: not valid JSON"}},
		"no conversations": {"[]", []string{"f: no conversations"}},
		"none answered": {"[\n{\"conversations\": []}, {\"conversations\": []}]",
			[]string{"f:2: conversations: no question and its answer, nor in any other"}},
	} {
		src, _, err := newSource("f", strings.NewReader(c.text), wholeFile(""))
		if err == nil {
			_, err = readAll(src)
		}
		wantLineError(t, name, err, c.want)
	}
}

// Arrays and conversations may come one after another in any order.
func TestShareGPTGoesOn(t *testing.T) {
	const good = `{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}`
	for _, text := range []string{
		"[" + good + "]\n[" + good + "]", "[" + good + "]\n" + good, good + "\n[" + good + "]\n",
		good + "\n" + good + good, "[][" + good + "] [ ]\n\n[\n" + good + "\n]",
	} {
		src, _, err := newSource("f", strings.NewReader(text), wholeFile(""))
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
