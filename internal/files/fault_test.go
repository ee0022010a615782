package files

import (
	"strings"
	"testing"
)

// The fault of a text is an error with its line, in the decoder's words.
func TestTextFaults(t *testing.T) {
	for text, want := range map[string]string{
		"[workload\nrate=1": "f:1: ",
		"a=1\nrate=\n":      "f:2: ",
		"\n\nb = 1 2\nc=3":  "f:3: ",
		"x = 1\nx = 2":      "f:2: no valid TOML: Key 'x' has already been defined",
	} {
		var v map[string]any
		if err := DecodeTOML("f", text, &v); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":           "f: empty",
		"[1,\n2":     "f:2: damaged, no valid JSON at column 1: unexpected end",
		`{"a":}`:     "f:1: damaged, no valid JSON at column 6: ",
		"{\"a\": 1}": "f:1: want a list, got object",
	} {
		var v []any
		err := ParseJSON("f", []byte(text), &v)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Damage of packed data is told, wherever it is.
func TestPackedFaults(t *testing.T) {
	whole := string(zipped(strings.Repeat("some text that packs ", 50)))
	for _, data := range []string{
		whole[:len(whole)/2],
		whole[:len(whole)-8] + "\x00\x00\x00\x00" + whole[len(whole)-4:],
		whole + "garbage that is long",
		whole[:10] + "\xff\xff\xff\xff" + whole[14:],
	} {
		r, err := Unpack(strings.NewReader(data))
		if err == nil {
			_, err = ReadAll("f", r)
		}
		if err == nil || !strings.Contains(err.Error(), "damaged gzip data: ") {
			t.Errorf("%q: %v", data, err)
		}
	}
}
