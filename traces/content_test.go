package traces

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Each of hash_ids is a piece of 512 tokens, the last one what remains.
func TestMooncakeContent(t *testing.T) {
	src, _, err := openTrace("testdata/mooncake.jsonl", wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	all, err := readAll(src)
	if err != nil {
		t.Fatal(err)
	}
	want := []prefix.Piece{{ID: 1, Tokens: 512}, {ID: 33, Tokens: 512}, {ID: 34, Tokens: 29}}
	if got := all[3].Content; !reflect.DeepEqual(got.Prompt, want) || got.Answer != 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i, a := range all {
		sum := 0
		for _, p := range a.Content.Prompt {
			sum += p.Tokens
		}
		if sum != a.Prompt {
			t.Errorf("request %d: pieces of %d tokens, want %d", i, sum, a.Prompt)
		}
	}
	line := `{"timestamp": 0, "input_length": 6758, "output_length": 5, "hash_ids": null}`
	if r, err := newMooncake(nil).decode([]byte(line)); err != nil || r.content != nil {
		t.Errorf("without hashes: %+v, %v", r.content, err)
	}
}

func TestContentText(t *testing.T) {
	for _, c := range []*prefix.Content{nil, {Answer: 1},
		{Prompt: []prefix.Piece{{ID: 0, Tokens: 7}}},
		{Prompt: []prefix.Piece{{ID: 1 << 63, Tokens: 7}, {ID: 2, Tokens: 3}}, Answer: 1<<64 - 1},
	} {
		if got, err := ParseContent("k", contentText(c), 10); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v reads as %+v, %v", c, got, err)
		}
	}
}

// What a column cannot hold is said.
func TestConvertSaysWhatItLoses(t *testing.T) {
	path := writeFile(t, "a.jsonl", `{"timestamp": 0, "input_length": 9, "output_length": 1}
{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [7]}
`)
	var out strings.Builder
	_, lost, err := ConvertTo(t.Context(), &out, path, "")
	if err != nil || len(lost) != 2 || !strings.Contains(lost[0].Text, "1 row without hash_ids") ||
		!strings.Contains(lost[1].Text, "content of 1 request is not written") {
		t.Errorf("%q, %v", lost, err)
	}
	if strings.Contains(out.String(), "content") {
		t.Errorf("%q", out.String())
	}
}

// writeFile makes a file of a test.
func writeFile(t testing.TB, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
