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

// Sizes and durations of drive measurements: larger than the drive's read cache, and long enough to
// be steady.
const (
	driveBytes = 4 << 30
	driveEach  = 5 * time.Second
	quickBytes = 256 << 20
	quickEach  = 200 * time.Millisecond
)

type calibrateDrive struct {
	Folder string `arg:"" name:"DIR" help:"Folder on the SSD. Reads are measured by queue depth past the page cache, in two minutes and a file of 4 GiB that is removed at the end."`
	Out    string `default:"out/drive.toml" placeholder:"FILE" help:"Drive file to write. Default: ${default}."`
	Quick  bool   `help:"A smaller file and fewer seconds."`
}

// Run measures the SSD of a folder and writes its file.
func (c *calibrateDrive) Run(ctx context.Context, app *App) error {
	if err := checkTOML(c.Out); err != nil {
		return err
	}
	o := drive.Options{Folder: c.Folder, Bytes: driveBytes, Each: driveEach, Depths: drive.Depths(),
		Log: func(text string) { fmt.Fprintln(app.Stderr, text) }}
	if c.Quick {
		o.Bytes, o.Each = quickBytes, quickEach
	}
	if err := files.CheckOutput(c.Out); err != nil { // before it is measured
		return err
	}
	found, err := drive.Measure(ctx, o)
	if err != nil {
		return err
	}
	d := found.Describe("measured", time.Now().Format(time.DateOnly))
	if err := os.MkdirAll(filepath.Dir(c.Out), 0o755); err != nil {
		return err
	}
	if err := files.Write(c.Out, drive.File(d)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: reads of 1 MiB %.4g MB/s, of 4 KiB %.4g 1/s, writes "+
		"%.4g MB/s; --set prefix_cache.drive=%[1]s\n", c.Out, d.Read.Value, d.Reads.Value, d.Write.Value)
	return err
}
