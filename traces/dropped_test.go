package traces

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// What a reader drops of a file is said once, with its count or the name that was meant.
func TestDroppedColumnsAreSaid(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		name, text, want string
	}{
		{"own.csv", "arrived_s,prompt_tokens,output_tokens,priority,sett\n0,9,9,1,a\n",
			`2 columns not read: "priority", "sett": own.csv`},
		{"other.csv", "arrival_s,prompt_tokens,output_tokens,set\n0,9,9,a\n", ""},
		{"azure.csv", "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n" +
			"2024-10-15 00:00:00.5000000,0,900,20\n2024-10-15 00:00:01.5000000,3,931,21\n" +
			"2024-10-15 00:00:02.5000000,1,962,22\n",
			"2 of 3 requests have images (NumImages): their encoder's time and tokens are left out: " +
				"azure.csv"},
		{"burst.csv", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
			"5,ChatGPT,472,18,490,Conversation log\n", ""},
		{"m.jsonl", `{"timestamp": 0, "input_length": 9, "output_length": 9, "chat": 1, ` +
			`"hash_ids": [0]}` + "\n",
			`1 key not read: "chat": m.jsonl`},
		{"h.jsonl", `{"timestamp": 0, "input_length": 9, "output_length": 9, "hashids": [0]}` + "\n",
			`1 key not read: "hashids": h.jsonl`},
		{"seconds.jsonl", `{"timestamp": 0.7, "input_length": 9, "output_length": 9, "hash_ids": [0]}` +
			"\n", "times with fractions of ms, Mooncake's unit, in 1 of 1 request: seconds.jsonl; " +
			"if they are in s, set workload.speed = 0.001"},
		{"b.csv", "arrived_s,prompt_tokens,output_tokens,contents\n0,9,9,1\n",
			`1 column not read: "contents": b.csv`},
		{"l.jsonl", `{"length": 900, "dataset": "lcc", "input": "q", "_id": "1", "priority": 2}` + "\n",
			`1 key not read: "priority": l.jsonl`},
		{"s.json", `[{"id": 1, "system": "be brief", "conversations": [{"from": "human", "value": ` +
			`"hi", "images": []}, {"from": "gpt", "value": "ho", "weight": 1}]}]`,
			`2 keys not read: "system", "weight": s.json`},
		{"t.jsonl", `{"session_id": "a", "turns": [{"text": "hi", "output_length": 5, "audio": "x"}, ` +
			`{"text": "ho", "output_length": 5}]}` + "\n",
			"1 of 2 requests have images, audio or video (image, images, audio, audios, video, videos): " +
				"their encoder's time and tokens are left out: t.jsonl"},
		{"u.jsonl", `{"session_id": "a", "turns": [{"text": "hi", "output_length": 5, "tools": []}]}`,
			`1 key not read: "tools": u.jsonl`},
		{"c.jsonl", `{"prompt": "hi", "output_tokens": 5, "multi_modal_data": {"image": "x"}}`,
			"1 of 1 request have images (image_files, multi_modal_data): their encoder's time and " +
				"tokens are left out: c.jsonl"},
	} {
		if err := os.WriteFile(c.name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := Describe(context.Background(), c.name, "", KV{})
		if err != nil {
			t.Fatal(err)
		}
		if c.want != "" && !slices.Contains(warn.Texts(d.Warnings), c.want) ||
			c.want == "" && len(d.Warnings) > 0 {
			t.Errorf("%s: %q, want %q", c.name, d.Warnings, c.want)
		}
	}
}

// A run and a description warn alike of rows without the content that others have.
func TestRowsWithoutContent(t *testing.T) {
	path := writeFile(t, "a.jsonl", `{"timestamp": 0, "input_length": 9, "output_length": 1}
{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [7]}
`)
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests, s.Arrivals = path, 0, ArrivalsTrace })
	collect(t, s)
	d, err := Describe(t.Context(), path, "", KV{})
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
