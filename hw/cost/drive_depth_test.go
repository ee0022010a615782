package cost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// shallow is a drive that needs many reads at once.
const shallow = `
name = "shallow"
title = "a drive of a test"
size = { value = 100, unit = "GB", from = "measured", source = "test" }
read = { value = 4000, unit = "MB/s", from = "measured", source = "test" }
write = { value = 1000, unit = "MB/s", from = "measured", source = "test" }
reads = { value = 100000, unit = "1/s", from = "measured", source = "test" }
[[depths]]
depth = 1
reads = { value = 10000, unit = "1/s", from = "measured", source = "test" }
rate = { value = 1000, unit = "MB/s", from = "measured", source = "test" }
[[depths]]
depth = 8
reads = { value = 60000, unit = "1/s", from = "measured", source = "test" }
rate = { value = 3000, unit = "MB/s", from = "measured", source = "test" }
`

func drive(t *testing.T, text string) (*hw.Drive, error) {
	path := filepath.Join(t.TempDir(), "d.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return hw.LoadDrive(path)
}

// A prefix is read from SSD at the rate of the reads that wait at once: 30 chunks of 1 MB in 30 ms
// at depth 1, and never in more time where more wait.
func TestDrivesByDepth(t *testing.T) {
	last := 1.0
	for _, tc := range []struct {
		depth string
		ms    float64
	}{{"depth = 1", 30}, {"depth = 7", 30}, {"depth = 8", 10}, {"depth = 99", 10}, {"", 7.5}} {
		d, err := drive(t, tc.depth+shallow)
		if err != nil {
			t.Fatal(err)
		}
		p := prefixLinks{opts: PrefixOptions{Drive: d, GPUs: 1, Chunk: 1e6}}
		got := p.ssd(30e6)
		if got != tc.ms/1e3 || got > last {
			t.Errorf("%q: %g s, want %g ms", tc.depth, got, tc.ms)
		}
		last = got
		p.opts.Chunk = 4096 // IOPS bind
		if rate, reads := d.Reading(); p.ssd(30e6) != max(30e6/rate, 30e6/4096/reads) {
			t.Errorf("%q: %g s of small chunks", tc.depth, p.ssd(30e6))
		}
	}
	for want, text := range map[string]string{
		"depth: want 0": "depth = -1" + shallow,
		"want numbers above 0 that rise": shallow + strings.Replace(
			shallow[strings.LastIndex(shallow, "[["):], "8", "4", 1),
		"depth: want 0, or a depth ": "depth = 2" + shallow[:strings.Index(shallow, "[[")],
	} {
		if _, err := drive(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
