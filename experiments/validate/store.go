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

// Folders of a validation's result folder; each holds a folder a run.
const (
	liveFolder      = "live"
	simulatedFolder = "simulated"
)

// callsFile holds what each step of a live run asked of the device.
const callsFile = "calls.json.gz"

// hasCalls says whether a live run was kept with that file: a store of many runs may do without.
func hasCalls(m *manifest) bool { return m.Files[callsFile] != "" }

// compress replaces a finished run's table of requests by a compressed one, and removes that of
// its steps: the steps that are compared are those of callsFile.
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
