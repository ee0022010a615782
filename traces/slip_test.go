package traces

import (
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// A misspelt key of what prompts share, and rows without it, are warned of with the first line.
func TestSlips(t *testing.T) {
	const (
		own   = "arrived_s,prompt_tokens,output_tokens,"
		burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
		hash  = `{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [7]}` + "\n"
		none  = `{"timestamp": 0, "input_length": 9, "output_length": 1}` + "\n"
		null  = `{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": null}` + "\n"
		wrong = `{"timestamp": 0, "input_length": 9, "output_length": 1, "hashids": [7]}` + "\n"
		said  = `{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}`
		typo  = `{"conversations": [{"from": "human", "value": "a"}, {"from": "system",` + "\n" +
			`"valu": "b"}, {"from": "gpt", "value": "b"}]}`
		style = `{"messages": [{"role": "user", "value": "a"}, {"role": "user", "content": "a"}, ` +
			`{"role": "assistant", "content": "b"}]}`
		tools = `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null,` +
			` "tool_calls": []}, {"role": "assistant", "tool_calls": []},` +
			` {"role": "assistant", "content": "b"}]}`
	)
	for name, c := range map[string]struct {
		text string
		want []string // parts, of a warning each
	}{
		"hashids": {wrong + none,
			[]string{`prompts share less: f:1: "hashids" (did you mean "hash_ids"?)`}},
		"hashids below":   {"\n" + none + wrong, []string{`f:3: "hashids" (did you mean "hash_ids"?)`}},
		"no hash_ids":     {none + null, nil},
		"hash_ids":        {hash + hash, nil},
		"some hash_ids":   {hash + none + hash + null, []string{"2 rows without hash_ids", "f:2"}},
		"hash_ids below":  {null + hash, []string{"1 row without hash_ids", "f:1"}},
		"hashids in some": {hash + wrong, []string{"1 row without hash_ids", `f:2: "hashids"`}},
		"contents": {own + "set,contents\n0,9,1,a,\n",
			[]string{`f:1: "contents" (did you mean "content"?)`}},
		"sesion": {own + "Sesion\n0,9,1,a\n",
			[]string{`f:1: "Sesion" (did you mean "session"?)`}},
		"session": {own + "SESSION,sessions\n0,9,1,a,a\n", nil},
		"Session_ID": {burst + ",Session_ID\n5,m,9,1,10,log,3\n",
			[]string{`f:1: "Session_ID" (did you mean "Session ID"?)`}},
		"BurstGPT": {burst + ",Elapsed time\n5,m,9,1,10,log,3\n", nil},
		"Azure": {"TIMESTAMP,ContextTokens,GeneratedTokens,Sesion\n" +
			"2023-11-16 18:17:03,10,20,a\n", nil},
		"valu": {"[" + said + ",\n" + typo + "]",
			[]string{"estimated", `texts are left out: f:3: "valu" (did you mean "value"?)`}},
		"value of content": {said + "\n" + style,
			[]string{"estimated", `f:2: "value" (did you mean "content"?)`}},
		"tool calls": {said + "\n" + tools, []string{"estimated"}},
		"a server's record": {"id,set,trace_prompt_tokens,prompt_tokens,output_tokens,arrival_s," +
			"scheduled_s,first_token_s,last_token_s,preemptions,rejected,recall_proxy,accuracy_proxy\n" +
			"0,a,9,9,1,0,0,0,0,0,0,1,1\n", nil},
	} {
		src, _, err := newSource("f", strings.NewReader(c.text), wholeFile(""))
		if err == nil {
			_, err = readAll(src)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := slices.DeleteFunc(warn.Texts(src.warnings()),
			func(s string) bool { return strings.Contains(s, " not read: ") }) // dropped_test.go
		text := strings.Join(w, "\n")
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q lacks %q", name, w, part)
			}
		}
		if len(c.want) == 0 && len(w) > 0 || len(w) > max(1, len(c.want)) {
			t.Errorf("%s: %q", name, w)
		}
	}
}

// A run and a description warn alike, and the place comes after the colon.
func TestSlipsOfRuns(t *testing.T) {
	path := writeFile(t, "a.jsonl", `{"timestamp": 0, "input_length": 9, "output_length": 1}
{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [7]}
`)
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests, s.Arrivals = path, 0, ArrivalsTrace })
	collect(t, s)
	d, err := Describe(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	want := "1 row without hash_ids, though others have them, share nothing: the first in " + path +
		":1"
	for _, w := range [][]string{warn.Texts(s.Warnings()), warn.Texts(d.Warnings)} {
		if len(w) != 1 || w[0] != want {
			t.Errorf("%q, want %q", w, want)
		}
	}
}

// Where no text is left for a misspelt key, the error names it.
func TestSlipLeavesNothing(t *testing.T) {
	src, _, err := newSource("f", strings.NewReader(`{"messages": [{"role": "user", "contnt": "a"}]}`),
		wholeFile(""))
	if err == nil {
		_, err = readAll(src)
	}
	wantLineError(t, "contnt", err, []string{`f:1: contnt: did you mean "content"?`})
}
