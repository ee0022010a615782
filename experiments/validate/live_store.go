package validate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// manifestFile is the last file written to the folder of a kept live run.
const manifestFile = "point.json"

// manifest has the versions and files on which a live run depends besides its configuration.
type manifest struct {
	Inputs  config.Inputs `json:"inputs"`
	Device  string        `json:"device,omitempty"`
	Program string        `json:"program,omitempty"` // version of what made it, and its options
}

func readManifest(dir string) (m manifest, err error) {
	return m, files.ReadJSON(filepath.Join(dir, manifestFile), &m)
}

// liveStore keeps live runs of several devices and programs, each in its own folder with a
// manifest. A run is found by its configuration.
type liveStore struct {
	*Validation
	dir    string
	steps  []live.RecordedStep // of the run that was made last
	places map[string]string   // folders of the runs that were found or made, by the hash of the point
	hashes *config.Hasher
	// configurations of kept runs as parsed today, by folder, card and engine
	texts map[[3]string][]byte
}

// openLive opens the store of live runs for the current machine, and removes unfinished files of
// killed processes.
func (v *Validation) openLive() (*liveStore, error) {
	s := &liveStore{Validation: v, dir: filepath.Join(v.Dir, liveFolder), places: map[string]string{},
		hashes: config.NewHasher(), texts: map[[3]string][]byte{}}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	left, err := files.Glob(s.dir, ".*"+run.Unfinished)
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return s, err
}

// find finds the folder of a finished run, if there is one. It notes a folder whose files are
// damaged.
func (s *liveStore) find(p *config.Point) error {
	folders, err := files.Glob(s.dir, "[^.]*")
	var found, damaged []string
	for i := 0; i < len(folders) && err == nil; i++ {
		var same bool
		if same, err = s.same(folders[i], p); !same {
			continue
		}
		if damage := whole(folders[i]); damage != nil {
			damaged = append(damaged, fmt.Sprintf("%v; %s runs again", damage, p.Name))
		} else {
			found = append(found, folders[i])
		}
	}
	switch {
	case err != nil:
		return err
	case len(found) > 1:
		return fmt.Errorf("%s is kept %d times, of other devices or programs: %s; remove all but one",
			p.Name, len(found), strings.Join(found, ", "))
	case len(found) == 1:
		s.places[p.Hash] = found[0]
	default:
		s.notes = append(s.notes, damaged...)
	}
	return nil
}

// whole reads the files of a live run.
func whole(dir string) error {
	_, served := readServed(dir)
	_, summary := run.ReadSummary(dir)
	_, calls := files.ReadResult(filepath.Join(dir, callsFile))
	return errors.Join(served, summary, calls)
}

// program names what makes live runs now.
func (s *liveStore) program() string { return s.LiveProgram + " " + s.Live.Options() }

// same reports whether a folder has the run of p. With Kept, card, engine, device and program may
// be others. Keys that the kept configuration does not have take their defaults.
func (s *liveStore) same(dir string, p *config.Point) (bool, error) {
	want, in, err := s.hashes.Identity(p)
	if err != nil {
		return false, err
	}
	m, damage := readManifest(dir)
	if damage != nil || m.Inputs.Model != in.Model || m.Inputs.Trace != in.Trace ||
		!s.Kept && (m.Inputs != in || m.Device != s.device || m.Program != s.program()) {
		return false, nil
	}
	key := [3]string{dir, p.System.Engine, p.GPU}
	if _, ok := s.texts[key]; !ok {
		s.texts[key] = nil
		if kept, err := config.LoadPoint(filepath.Join(dir, run.ConfigFile),
			"system.engine="+strconv.Quote(p.System.Engine), "gpu="+strconv.Quote(p.GPU)); err == nil {
			s.texts[key], _ = kept.TOML()
		}
	}
	return s.texts[key] != nil && bytes.Equal(s.texts[key], want), nil
}

// Begin implements run.Keeper.
func (s *liveStore) Begin(p *config.Point) (*run.RunFiles, error) {
	dir, err := os.MkdirTemp(s.dir, ".*"+run.Unfinished)
	if err != nil {
		return nil, err
	}
	return run.NewRunFiles(dir, p, func() error { return s.seal(dir, p) })
}

// seal completes a finished run and renames its folder. It replaces a damaged run of that name; a
// whole one of another device or program is kept.
func (s *liveStore) seal(dir string, p *config.Point) error {
	_, in, err := s.hashes.Identity(p)
	if err != nil {
		return err
	}
	text, err := marshalCalls(s.steps)
	if err == nil {
		err = errors.Join(writeGzip(filepath.Join(dir, callsFile), text), compress(dir))
	}
	if err != nil {
		return err
	}
	if err := run.WriteJSON(filepath.Join(dir, manifestFile),
		manifest{in, s.device, s.program()}); err != nil {
		return err
	}
	final := filepath.Join(s.dir, s.names[p.Hash])
	for n := 2; whole(final) == nil; n++ {
		final = filepath.Join(s.dir, fmt.Sprintf("%s-%d", s.names[p.Hash], n))
	}
	s.places[p.Hash] = final
	return errors.Join(os.RemoveAll(final), os.Rename(dir, final))
}
