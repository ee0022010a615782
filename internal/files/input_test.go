package files

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func readAll(t *testing.T, r io.ReadCloser, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pipes are left open, so that no other has the number of one.
var pipes []*os.File

// pipeWith returns a path, as a shell names <(command), at which text can be read once.
func pipeWith(t *testing.T, text string) string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pipes = append(pipes, r)
	return fmt.Sprintf("/dev/fd/%d", r.Fd())
}

func TestInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := Input(path)
		if got := readAll(t, r, err); got != "text" || Once(path) {
			t.Errorf("file: %q", got)
		}
	}
	pipe := pipeWith(t, "piped")
	r, err := Input(pipe)
	if got := readAll(t, r, err); got != "piped" || !Once(pipe) {
		t.Errorf("pipe: %q", got)
	}
	if _, err := Input(path + "x"); err == nil {
		t.Error("no error of a file that does not exist")
	}
}

// What can be read once is read again from where it was kept, and leaves no file.
func TestAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	pipe := pipeWith(t, strings.Repeat("piped ", 50_000)[:60_000])
	for range 3 {
		r, err := Again(pipe)
		if got := readAll(t, r, err); len(got) != 60_000 {
			t.Errorf("%d bytes", len(got))
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestInputRefused(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		fifo: "empty; nothing was written to it", pipeWith(t, ""): "empty; nothing was written to it",
		"/dev/zero": "a terminal or a device; give a file, or pipe one into it",
	} {
		for _, open := range []func(string) (io.ReadCloser, error){Input, Again} {
			if _, err := open(path); err == nil || err.Error() != path+": "+want {
				t.Errorf("%s: %v, want %s", path, err, want)
			}
		}
	}
}

func zipped(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write([]byte(text))
	z.Close()
	return out.Bytes()
}

func zstandard(text string) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return z.EncodeAll([]byte(text), nil)
}

func TestUnpack(t *testing.T) {
	skippable := append([]byte{0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0}, "abc"...)
	for name, c := range map[string]struct{ data, want []byte }{
		"plain":                 {[]byte("a,b\n"), []byte("a,b\n")},
		"nothing":               {nil, nil},
		"shorter than a magic":  {[]byte{0x1f}, []byte{0x1f}},
		"gzip":                  {zipped("ab"), []byte("ab")},
		"gzips on end":          {append(zipped("ab"), zipped("cd")...), []byte("abcd")},
		"zstd":                  {zstandard("ab"), []byte("ab")},
		"zstds on end":          {append(zstandard("ab"), zstandard("cd")...), []byte("abcd")},
		"zstd to skip at first": {append(skippable, zstandard("ab")...), []byte("ab")},
		"gzip of nothing":       {zipped(""), nil},
	} {
		r, err := Unpack(bytes.NewReader(c.data))
		if got := readAll(t, r, err); got != string(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// FuzzUnpack: whatever the bytes are, reading ends, and an error names the detected format.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte("a,b\n"))
	f.Add(zipped("ab"))
	f.Add(zstandard("ab"))
	f.Add(append(zipped("ab"), 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Unpack(bytes.NewReader(data))
		if err == nil {
			defer r.Close()
			_, err = io.Copy(io.Discard, io.LimitReader(r, 1<<24))
		}
		if err != nil && !strings.HasPrefix(err.Error(), "damaged gzip data") &&
			!strings.HasPrefix(err.Error(), "damaged zstd data") {
			t.Error(err)
		}
	})
}
