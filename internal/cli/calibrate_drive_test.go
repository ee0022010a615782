package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
)

// A drive is measured into a file that a simulation takes.
func TestCalibrateDrive(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a drive for seconds")
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("ssd", 0o755); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runHere(t.Context(), run.NewSimulator().Run, "calibrate", "drive", "ssd",
		"--quick")
	if strings.Contains(errs, "O_DIRECT") {
		t.Skip(errs)
	}
	if status != 0 || !strings.Contains(out, "out/drive.toml: reads of 1 MiB ") {
		t.Fatalf("status %d, %q, %q", status, out, errs)
	}
	if d, err := hw.LoadDrive("out/drive.toml"); err != nil || len(d.Depths) < 4 {
		t.Fatalf("%+v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if status, _, errs := runHere(ctx, nil, "calibrate", "drive", "ssd"); status != Interrupted {
		t.Errorf("interrupted: status %d, %q", status, errs)
	}
	status, _, errs = runHere(t.Context(), run.NewSimulator().Run, "calibrate", "drive", "none")
	if status != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "none: ") {
		t.Errorf("status %d, %q", status, errs)
	}
}
