package run

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// WriteFile writes to a temporary file next to path first, so that nothing half written is ever
// found elsewhere.
func WriteFile(path string, text []byte) error {
	return renameio.WriteFile(path, text, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// ClearLeft removes what a killed process has left of a folder's files: each was
// to get one of the names.
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
	text, err := Marshal(sum)
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
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithPermissions(0o644))
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
