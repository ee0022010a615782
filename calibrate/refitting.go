package calibrate

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Refit makes profile and table of plots from a file of samples, compressed or not, without a
// GPU.
func Refit(csv, out string) (*Calibration, error) {
	data, err := readPacked(csv)
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
		if path := CSVPath(out); filepath.Clean(path) != filepath.Clean(csv) {
			if err := renameio.WriteFile(path, s.Encode(), 0o644); err != nil {
				return nil, err
			}
		}
		return c, c.Write(out)
	}
	return c, nil
}

// readPacked returns a file's text, which may be compressed.
func readPacked(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := files.Unpack(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer text.Close()
	data, err := io.ReadAll(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}
