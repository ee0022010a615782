package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sparseserve/sparseserve/calibrate/drive"
	"github.com/sparseserve/sparseserve/internal/files"
)

// Of a drive that is measured: more than it has of memory for reads, and long enough to be steady.
const (
	driveBytes = 4 << 30
	driveEach  = 5 * time.Second
	quickBytes = 256 << 20
	quickEach  = 200 * time.Millisecond
)

// measureDrive measures the SSD of a folder and writes its file.
func (c *calibrateCmd) measureDrive(ctx context.Context, app *App) error {
	out := c.Out
	if out == defaultCalibration {
		out = filepath.Join(filepath.Dir(out), "drive.toml")
	}
	o := drive.Options{Folder: c.Drive, Bytes: driveBytes, Each: driveEach, Depths: drive.Depths(),
		Log: func(text string) { fmt.Fprintln(app.Stderr, text) }}
	if c.Quick {
		o.Bytes, o.Each = quickBytes, quickEach
	}
	if err := files.CheckOutput(out); err != nil { // before it is measured
		return err
	}
	found, err := drive.Measure(ctx, o)
	if err != nil {
		return interrupted(ctx, err)
	}
	d := found.Describe("measured", time.Now().Format(time.DateOnly))
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	if err := files.Write(out, drive.File(d)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: reads of 1 MiB %.4g MB/s, of 4 KiB %.4g 1/s, writes "+
		"%.4g MB/s; --set system.prefix_drive=%s\n", out, d.Read.Value, d.Reads.Value, d.Write.Value, out)
	return err
}
