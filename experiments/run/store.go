package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
)

// Files of a result folder.
const (
	ConfigFile   = "config.toml"
	SummaryFile  = "summary.json"
	summaryCSV   = "summary.csv"
	pointsFolder = "points"
	RequestsCSV  = "requests.csv"
	StepsCSV     = "steps.csv"
	traceJSON    = "trace.json"
)

// Store is a result folder:
//
//	config.toml    the resolved configuration
//	summary.json   one object a finished point
//	summary.csv    the same as a table
//	points/NAME/   config.toml, summary.json, requests.csv, steps.csv, trace.json
//
// Every file appears whole or not at all, and holds nothing that differs
// between two runs of the same configuration.
type Store struct{ dir string }

// NewStore starts a result folder for the experiment, in the place of an
// earlier one: results of that are removed, other files are not.
func NewStore(dir string, c *config.Config) (*Store, error) {
	text, err := c.TOML()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, pointsFolder, storeFile)); err == nil {
		return nil, fmt.Errorf("%s: holds a sweep; choose another folder", dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, pointsFolder), 0o755); err != nil {
		return nil, err
	}
	if err := removeResults(dir); err != nil {
		return nil, err
	}
	return &Store{dir}, WriteFile(filepath.Join(dir, ConfigFile), text)
}

// Dir returns the result folder.
func (s *Store) Dir() string { return s.dir }

// Finish writes the summaries of all results and names the files of the
// folder, points apart.
func (s *Store) Finish(results []Result) ([]string, error) {
	sums := Summaries(results)
	text, err := MarshalSummaries(sums)
	if err != nil {
		return nil, err
	}
	json := filepath.Join(s.dir, SummaryFile)
	if err := WriteFile(json, text); err != nil {
		return nil, err
	}
	csv := filepath.Join(s.dir, summaryCSV)
	if err := WriteFile(csv, tabulate(sums).Bytes()); err != nil {
		return nil, err
	}
	return []string{filepath.Join(s.dir, ConfigFile), json, csv}, nil
}

// Abandon removes what the store wrote, for an experiment of which no point
// finished.
func (s *Store) Abandon() error {
	err := errors.Join(removeResults(s.dir), os.Remove(filepath.Join(s.dir, ConfigFile)))
	// The folders go too, unless they hold something else.
	if os.Remove(filepath.Join(s.dir, pointsFolder)) == nil {
		os.Remove(s.dir)
	}
	return err
}

// removeResults removes the results of an earlier run, so that a folder never
// mixes two.
func removeResults(dir string) error {
	var errs []error
	for _, name := range []string{SummaryFile, summaryCSV} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, ClearLeft(dir, ConfigFile, SummaryFile, summaryCSV))
	points, err := os.ReadDir(filepath.Join(dir, pointsFolder))
	errs = append(errs, err)
	for _, p := range points {
		folder := filepath.Join(dir, pointsFolder, p.Name())
		if _, err := os.Stat(filepath.Join(folder, ConfigFile)); err == nil {
			errs = append(errs, os.RemoveAll(folder))
		} else {
			errs = append(errs, ClearLeft(folder, RequestsCSV, StepsCSV, traceJSON, ConfigFile))
		}
	}
	return errors.Join(errs...)
}

// WriteFile writes to a temporary file next to path first, so that nothing half written is ever found
// elsewhere.
func WriteFile(path string, text []byte) error {
	return renameio.WriteFile(path, text, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// ClearLeft removes what a killed process has left of a folder's files: each was
// to get one of the names.
func ClearLeft(dir string, names ...string) error {
	for _, name := range names {
		left, err := filepath.Glob(filepath.Join(dir, "."+name+"[0-9]*"))
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

// PointFiles are the files of one point while it runs. A nil *pointFiles
// keeps nothing.
type PointFiles struct {
	dir          string
	config       []byte
	requests     *pendingFile
	steps, trace *pendingFile // nil when not wanted
	seal         func() error // ends commit; nil when nothing is left to do
	committed    bool
}

// Begin implements Keeper.
func (s *Store) Begin(p *config.Point) (*PointFiles, error) {
	return beginFiles(filepath.Join(s.dir, pointsFolder, p.Name), p)
}

// beginFiles opens the files of a point in a folder of its own.
func beginFiles(dir string, p *config.Point) (*PointFiles, error) {
	config, err := p.TOML()
	if err != nil {
		return nil, err
	}
	f := &PointFiles{dir: dir, config: config}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	if f.requests, err = newPending(filepath.Join(f.dir, RequestsCSV)); err != nil {
		f.discard()
		return nil, err
	}
	if p.Output.Steps {
		if f.steps, err = newPending(filepath.Join(f.dir, StepsCSV)); err != nil {
			f.discard()
			return nil, err
		}
	}
	if p.Output.Trace {
		if f.trace, err = newPending(filepath.Join(f.dir, traceJSON)); err != nil {
			f.discard()
			return nil, err
		}
	}
	return f, nil
}

func (f *PointFiles) sink() Sink {
	if f == nil {
		return Sink{Requests: io.Discard}
	}
	s := Sink{Requests: f.requests}
	if f.steps != nil {
		s.Steps = f.steps
	}
	if f.trace != nil {
		s.Trace = f.trace
	}
	return s
}

// commit gives the files their names, the summary last.
func (f *PointFiles) commit(sum *sim.Summary) error {
	if f == nil {
		return nil
	}
	text, err := marshalSummary(sum)
	if err != nil {
		return err
	}
	for _, p := range []*pendingFile{f.requests, f.steps, f.trace} {
		if p != nil {
			if err := p.commit(); err != nil {
				return err
			}
		}
	}
	if err := WriteFile(filepath.Join(f.dir, ConfigFile), f.config); err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(f.dir, SummaryFile), text); err != nil {
		return err
	}
	if f.seal != nil {
		if err := f.seal(); err != nil {
			return err
		}
	}
	f.committed = true
	return nil
}

// discard removes what an unfinished point has written. After commit it does
// nothing.
func (f *PointFiles) discard() {
	if f == nil || f.committed {
		return
	}
	for _, p := range []*pendingFile{f.requests, f.steps, f.trace} {
		if p != nil {
			p.discard()
		}
	}
	os.RemoveAll(f.dir)
}

// pendingFile buffers writes to a file that has no name yet.
type pendingFile struct {
	*bufio.Writer
	file *renameio.PendingFile
}

func newPending(path string) (*pendingFile, error) {
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o644))
	if err != nil {
		return nil, err
	}
	return &pendingFile{bufio.NewWriter(file), file}, nil
}

func (p *pendingFile) commit() error {
	if err := p.Flush(); err != nil {
		return err
	}
	return p.file.CloseAtomicallyReplace()
}

func (p *pendingFile) discard() { p.file.Cleanup() }
