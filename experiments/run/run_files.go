package run

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Files of a run.
const (
	ConfigFile  = "config.toml"
	SummaryFile = "summary.json"
	RequestsCSV = "requests.csv"
	StepsCSV    = "steps.csv"
	traceJSON   = "trace.json"
)

// WriteFile writes a file through a temporary file next to path, so that path never holds a partial
// file.
func WriteFile(path string, text []byte) error {
	return renameio.WriteFile(path, text, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// WriteJSON writes a value as an indented JSON file, through a temporary file.
func WriteJSON(path string, value any) error {
	text, err := Marshal(value)
	if err != nil {
		return err
	}
	return WriteFile(path, text)
}

// ClearLeft removes the temporary files of a killed process for the given names.
func ClearLeft(dir string, names ...string) error {
	for _, name := range names {
		left, err := files.Glob(dir, "."+name+"[0-9]*")
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// RunFiles are the files of a run in progress, in their own folder. A nil RunFiles keeps nothing.
type RunFiles struct {
	dir    string
	config []byte
	tables map[string]*output // by name
	seal   func() error
	sealed bool
}

// output is an open output file.
type output struct {
	*bufio.Writer
	file *os.File
}

// NewRunFiles opens the files of a run in an existing folder. seal moves the folder of a finished
// run to its place.
func NewRunFiles(dir string, p *config.Point, seal func() error) (f *RunFiles, err error) {
	f = &RunFiles{dir: dir, tables: map[string]*output{}, seal: seal}
	if f.config, err = p.TOML(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	names := []string{RequestsCSV}
	if p.Output.Steps {
		names = append(names, StepsCSV)
	}
	if p.Output.Trace {
		names = append(names, traceJSON)
	}
	for _, name := range names {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			f.discard()
			return nil, err
		}
		f.tables[name] = &output{bufio.NewWriter(file), file}
	}
	return f, nil
}

// sink returns the Sink of a run.
func (f *RunFiles) sink() Sink {
	if f == nil {
		return Sink{Requests: io.Discard}
	}
	writer := func(name string) io.Writer {
		if t, ok := f.tables[name]; ok {
			return t
		}
		return nil
	}
	return Sink{Requests: writer(RequestsCSV), Steps: writer(StepsCSV), Trace: writer(traceJSON)}
}

// commit adds the configuration and the summary, closes the files and seals the folder.
func (f *RunFiles) commit(sum *metrics.Summary) error {
	if f == nil {
		return nil
	}
	text, err := Marshal(sum)
	if err != nil {
		return err
	}
	for _, t := range f.tables {
		err = errors.Join(err, t.Flush())
	}
	if err == nil {
		_, err = WriteFiles(f.dir, File{ConfigFile, f.config}, File{SummaryFile, text})
	}
	if err == nil {
		err = f.seal()
	}
	f.sealed = err == nil
	return err
}

// discard closes the files, and removes them if the run is not sealed.
func (f *RunFiles) discard() {
	if f == nil {
		return
	}
	for _, t := range f.tables {
		t.file.Close()
	}
	if !f.sealed {
		os.RemoveAll(f.dir)
	}
}
