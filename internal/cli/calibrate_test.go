package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

func calibrateWith(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	app := App{Stdout: &out, Stderr: &err}
	status = app.Main(context.Background(), append([]string{"calibrate"}, args...))
	return status, out.String(), err.String()
}

// Without the library there is nothing to measure with: exit 1, and what to do.
func TestCalibrateRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "card.toml")
	t.Setenv("SPARSESERVE_CUDA_LIB", "/no/such/library.so")
	status, stdout, stderr := calibrateWith("--out", path)
	if status != exitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "make calibrate") {
		t.Errorf("exit %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) > 0 {
		t.Errorf("left %v behind", entries)
	}
}

// A refit of committed samples needs no GPU and writes a profile.
func TestCalibrateRefits(t *testing.T) {
	if testing.Short() {
		t.Skip("a refit with pictures of 10 s; make test-all runs it")
	}
	path := filepath.Join(t.TempDir(), "card.toml")
	status, stdout, stderr := calibrateWith("refit",
		filepath.Join("..", "..", "hw", "kernels", "hopper.csv.gz"), "--out", path)
	if status != exitOK || stderr != "" || !strings.Contains(stdout, "load.flash") {
		t.Fatalf("exit %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if p, err := hw.Load(path, hw.FilesOf(path).Engine, nil); err != nil || p.Name != "h200" {
		t.Errorf("profile %v, %v", p, err)
	}
}
