package validate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// Folders of a validation's result folder. Each holds one folder per run.
const (
	liveFolder      = "live"
	simulatedFolder = "simulated"
)

// callsFile holds the calls of each step of a live run to the device.
const callsFile = "calls.json.gz"

// compress gzips a finished run's table of requests and removes its table of steps, because
// callsFile already holds the steps to compare.
func compress(dir string) error {
	path := filepath.Join(dir, run.RequestsCSV)
	text, err := files.ReadResult(path)
	if err != nil {
		return err
	}
	return errors.Join(writeGzip(path+".gz", text), os.Remove(path),
		os.Remove(filepath.Join(dir, run.StepsCSV)))
}

// writeGzip writes a compressed file, the same bytes for the same text.
func writeGzip(path string, text []byte) error {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return run.WriteFile(path, out.Bytes())
}
