package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
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
	if src, _, err = sourceOf("f", line, wholeFile("")); err != nil {
		t.Fatal(err)
	}
	if a, err := src.next(); err != nil || a.Content != nil {
		t.Errorf("without hashes: %+v, %v", a.Content, err)
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

// The first prompt of several blocks tells the tokens of a block: 16 in the Qwen-Bailian traces,
// whose times are in seconds and whose rows name images.
func TestBlocksOfOtherSizes(t *testing.T) {
	const row = `{"chat_id": %d, "parent_chat_id": -1, "timestamp": %g, "input_length": %d, ` +
		`"output_length": 5, "type": %q, "turn": 1, "hash_ids": [%s]}` + "\n"
	text := fmt.Sprintf(row, 0, 0.5, 14, "text", "7") +
		fmt.Sprintf(row, 1, 2.25, 40, "image", "0, 1, 2") +
		fmt.Sprintf(row, 2, 2.25, 33, "text", "0, 1, 3")
	read := func(text string) ([]sim.Arrival, []warn.Warning, error) {
		src, _, err := openTrace(writeFile(t, "a.jsonl", text), wholeFile(""))
		if err != nil {
			return nil, nil, err
		}
		defer src.Close()
		all, err := readAll(src)
		return all, src.warnings(), err
	}
	all, warnings, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]prefix.Piece{{{ID: 8, Tokens: 14}}, {{ID: 1, Tokens: 16}, {ID: 2, Tokens: 16},
		{ID: 3, Tokens: 8}}, {{ID: 1, Tokens: 16}, {ID: 2, Tokens: 16}, {ID: 4, Tokens: 1}}}
	for i, a := range all {
		if !slices.Equal(a.Content.Prompt, want[i]) {
			t.Errorf("prompt %d: %v, want %v", i, a.Content.Prompt, want[i])
		}
	}
	if len(all) != 3 || all[1].At != des.FromSeconds(1.75) {
		t.Errorf("%d requests, the second at %v, want 1.75 s", len(all), all[1].At)
	}
	if len(warnings) != 1 ||
		!strings.HasPrefix(warnings[0].Text, "1 of 3 requests have images (type)") {
		t.Errorf("warnings %v, want one of images", warnings)
	}
	// Where the last block has no id, the others tell the size.
	all, _, err = read(fmt.Sprintf(row, 0, 0.5, 75, "text", "1, 2, 3, 4") +
		fmt.Sprintf(row, 1, 0.5, 40, "text", "1, 2"))
	if err != nil || len(all) != 2 || !slices.Equal(all[1].Content.Prompt,
		[]prefix.Piece{{ID: 2, Tokens: 16}, {ID: 3, Tokens: 16}}) {
		t.Errorf("%v, %v, want two blocks of 16 tokens", all, err)
	}
	for name, line := range map[string]string{
		"another size": fmt.Sprintf(row, 3, 3.0, 600, "text", "0, 1"),
		"one id":       `{"timestamp": 1, "input_length": 5000, "output_length": 5, "hash_ids": [1]}`,
	} {
		before := text
		if name == "one id" {
			before = ""
		}
		_, _, err := read(before + line)
		if err == nil || !strings.Contains(err.Error(), "hash_ids") {
			t.Errorf("%s: %v, want an error of hash_ids", name, err)
		}
	}
}
