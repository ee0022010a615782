package files

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadResult(t *testing.T) {
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/zero", link, fifo, dir} {
		if _, err := ReadResult(path); err == nil ||
			err.Error() != "read "+path+": not a regular file" {
			t.Errorf("%s: %v", path, err)
		}
	}
	packed := filepath.Join(dir, "packed")
	if err := os.WriteFile(packed, zipped("a,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadResult(packed); string(text) != "a,b\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// endless is a stream without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReadAllHasALimit(t *testing.T) {
	_, err := readLimited("x", endless{}, 2<<20)
	if err == nil || err.Error() != "x: more than 2 MiB" {
		t.Error(err)
	}
}

func TestParseJSON(t *testing.T) {
	type nested struct {
		Name string   `json:"name"`
		Rate *float64 `json:"rate"`
		List []int    `json:"list"`
	}
	for text, want := range map[string]string{
		"[\n{\"name\": \"a\", \"rate\": \"fast\"}]": "f:2: rate: want a number, got string",
		"[{\"name\": 3}]":        "f:1: name: want a string, got number",
		"[{\"list\": [1, 2.5]}]": "f:1: list: want an integer, got number 2.5",
		"{}":                     "f:1: want a list, got object",
		"[\n\n{]":                "f:3: damaged, no valid JSON",
		"[{\"name\": \"a":        "f:1: damaged, no valid JSON",
		" \n":                    "f: empty",
	} {
		var into []nested
		if err := ParseJSON("f", []byte(text), &into); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var into []nested
	if err := ParseJSON("f", []byte(`[{"name": "a"}]`), &into); err != nil || into[0].Name != "a" {
		t.Errorf("%v, %v", into, err)
	}
}

func TestReadAll(t *testing.T) {
	text, err := ReadAll("x", bytes.NewReader([]byte("text")))
	if string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
