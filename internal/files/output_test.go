package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	input, folder := at("input"), at("folder")
	inside := filepath.Join(folder, "deep", "summary.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(inside), 0o755),
		os.WriteFile(input, []byte("in"), 0o600), os.WriteFile(inside, []byte("in"), 0o600),
		os.WriteFile(at("own"), []byte("before"), 0o600), os.Symlink(at("own"), at("link to own")),
		os.Symlink(input, at("link")), os.Link(input, at("hard")), os.Link(inside, at("hard inside")),
		os.Symlink(folder, at("other folder")), os.Symlink(at("nothing"), at("dangling")),
		syscall.Mkfifo(at("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		input: "the command reads or keeps", at("./folder/../input"): "the command reads or keeps",
		at("link"): "the command reads or keeps", at("hard"): "the command reads or keeps",
		inside: "the command reads or keeps", at("hard inside"): "the command reads or keeps",
		at("folder/new.json"):            "the command reads or keeps",
		at("other folder/deep/new.json"): "the command reads or keeps",
		folder:                           "not a regular file", at("fifo"): "not a regular file",
		"/dev/full": "not a regular file", at("dangling"): "a link that leads to no file",
		at("none/new"): "no such file",
	} {
		if err := Write(path, []byte("out"), input, folder, "no file"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for _, path := range []string{at("new"), at("own"), at("link to own"), at("folderly")} {
		if err := Write(path, []byte("out to "+path), input, folder); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Lstat(at("link to own")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is now %v, %v", info.Mode(), err)
	}
	for path, want := range map[string]string{input: "in", inside: "in",
		at("own"): "out to " + at("link to own")} {
		if text, err := os.ReadFile(path); string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// The target of a redirected stream is neither replaced nor read while it is written.
func TestWriteToStream(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := os.Stdin
	defer func() { os.Stdin = old }()
	os.Stdin = f
	if err := Write(f.Name(), nil); err == nil || !strings.Contains(err.Error(), "is open as") {
		t.Error(err)
	}
}
