package tomlfile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// Long strings are written over several lines and read back as they were.
func TestLongStringsAreWrapped(t *testing.T) {
	type values struct {
		Text  string   `toml:"text"`
		Notes []string `toml:"notes"`
	}
	long := strings.Repeat(`a "word" \ and, `, 20)
	for _, want := range []values{{"short", []string{"a"}}, {long, []string{long, "short", `x", "y`}},
		{strings.Repeat("x", 300), []string{strings.Repeat("y ", 60)}}} {
		text, err := Encode(map[string]any{"table": want})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Table values `toml:"table"`
		}
		if _, err := toml.Decode(string(text), &got); err != nil || !reflect.DeepEqual(got.Table, want) {
			t.Errorf("%v; wrote\n%s\nread %q, want %q", err, text, got.Table, want)
		}
		for line := range strings.Lines(string(text)) {
			if len(line) > columns+1 && strings.Contains(strings.TrimSpace(line), " ") &&
				!strings.Contains(line, "xxx") {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
		}
	}
}
