package calibrate

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Refit makes a profile and its table of plots from a file of samples, compressed or not, without a
// GPU.
func Refit(csv, out string) (*Calibration, error) {
	data, err := files.ReadResult(csv)
	if err != nil {
		return nil, err
	}
	s, err := ParseSamples(csv, data)
	if err != nil {
		return nil, err
	}
	c, err := Fit(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", csv, err)
	}
	if out != "" {
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return nil, err
		}
		for _, path := range []string{out, filepath.Join(PlotDir(out), FitsFile)} {
			if err := files.CheckOutput(path, csv); err != nil {
				return nil, err
			}
		}
		from, err := os.Stat(csv)
		if err != nil {
			return nil, err
		}
		path := CSVPath(out)
		if to, err := os.Stat(path); err != nil || !os.SameFile(from, to) {
			if err := files.Write(path, s.Encode()); err != nil {
				return nil, err
			}
		}
		return c, c.Write(out)
	}
	return c, nil
}
