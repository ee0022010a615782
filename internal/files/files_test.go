package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.toml")
	if err := os.WriteFile(path, []byte("x = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadText(path); string(text) != "x = 1\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadText(fifo); err == nil ||
		!strings.Contains(err.Error(), "nothing was written to it") {
		t.Errorf("FIFO without a writer: %v", err)
	}
	if _, err := ReadText("/dev/zero"); err == nil ||
		!strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("device without an end: %v", err)
	}
}

// TestPipe: what a shell's <(command) gives is read to its end, however late it comes.
func TestPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	go func() {
		<-started
		w.WriteString("late")
		w.Close()
	}()
	f, err := Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	close(started)
	text := make([]byte, 4)
	if n, err := f.Read(text); n != 4 || err != nil || string(text) != "late" {
		t.Errorf("%q, %v", text[:n], err)
	}
}
