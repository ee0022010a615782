package validate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// liveStore keeps live runs of several devices and programs, each in its own folder with a
// manifest. Several processes may make runs concurrently.
type liveStore struct {
	dir             string
	device, program string // that make runs now
	// folder returns the name of a run's folder. A run of the same name by another device or program
	// is kept.
	folder func(*config.Point) string
	any    bool // finds runs of the same configuration, whatever profile, device and program made them
	// finish completes the folder of a finished run.
	finish func(dir string) error

	hashes *config.Hasher
	// configurations of kept runs as parsed today, by folder, card and engine
	texts map[[3]string][]byte
}

// openLive prepares the folder and removes unfinished files of killed processes.
func openLive(s *liveStore) error {
	s.hashes, s.texts = config.NewHasher(), map[[3]string][]byte{}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	left, err := files.Glob(s.dir, ".*"+run.Unfinished)
	for _, path := range left {
		hash := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "."), run.Unfinished)
		release, e := run.Claim(s.dir, hash)
		if e == nil && release != nil {
			e = errors.Join(os.RemoveAll(path), release())
		}
		err = errors.Join(err, e)
	}
	return err
}

// hash identifies the run of a point, including the device and the program.
func (s *liveStore) hash(p *config.Point) (string, error) {
	text, in, err := s.hashes.Identity(p)
	base := run.DigestOf(string(text), in.Model, in.Trace)
	return run.DigestOf(base, in.GPU, s.device, s.program), err
}

// find returns the folder of a finished run; "" if there is none. note reports a folder whose
// content has changed.
func (s *liveStore) find(p *config.Point) (dir, note string, err error) {
	hash, err := s.hash(p)
	if err != nil {
		return "", "", err
	}
	folders, err := files.Glob(s.dir, "[^.]*")
	if err != nil {
		return "", "", err
	}
	for _, folder := range folders {
		if m, err := readManifest(folder); err != nil || m.Hash != hash {
			continue
		}
		ok, damage, err := whole(folder, p.Name)
		if ok || err != nil {
			return folder, "", err
		}
		note = damage
	}
	if note != "" || !s.any {
		return "", note, nil
	}
	var found []string
	for _, folder := range folders {
		if !s.same(folder, p) {
			continue
		}
		ok, damage, err := whole(folder, p.Name)
		if err != nil {
			return "", "", err
		}
		if note = damage; ok {
			found = append(found, folder)
		}
	}
	switch len(found) {
	case 0:
		return "", note, nil
	case 1:
		return found[0], "", nil
	}
	return "", "", fmt.Errorf("%s is kept %d times, of other devices or programs: %s; remove all "+
		"but one", p.Name, len(found), strings.Join(found, ", "))
}

// whole reports whether a folder has every file of its manifest.
func whole(dir, name string) (ok bool, note string, err error) {
	m, damage := readManifest(dir)
	if damage == nil {
		damage = m.check(dir)
	}
	switch {
	case errors.Is(damage, fs.ErrPermission):
		return false, "", damage
	case damage != nil:
		return false, fmt.Sprintf("%s: %v; %s runs again", dir, damage, name), nil
	}
	return true, "", nil
}

// same reports whether the configuration of a kept run, read today, equals p apart from card and
// engine. Keys that the run does not have take their defaults.
func (s *liveStore) same(dir string, p *config.Point) bool {
	want, in, err := s.hashes.Identity(p)
	m, damage := readManifest(dir)
	if err != nil || damage != nil || m.Inputs.Model != in.Model || m.Inputs.Trace != in.Trace {
		return false
	}
	key := [3]string{dir, p.System.Engine, p.GPU}
	if _, ok := s.texts[key]; !ok {
		s.texts[key] = nil
		if kept, err := config.LoadPoint(filepath.Join(dir, run.ConfigFile),
			"system.engine="+strconv.Quote(p.System.Engine), "gpu="+strconv.Quote(p.GPU)); err == nil {
			s.texts[key], _ = kept.TOML()
		}
	}
	return s.texts[key] != nil && bytes.Equal(s.texts[key], want)
}

// Begin implements run.Keeper.
func (s *liveStore) Begin(p *config.Point) (*run.RunFiles, error) {
	hash, err := s.hash(p)
	if err != nil {
		return nil, err
	}
	_, in, err := s.hashes.Identity(p)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, "."+hash+run.Unfinished)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return nil, err
	}
	return run.NewRunFiles(dir, p, func() error {
		return s.seal(dir, s.folder(p), &manifest{Name: p.Name, Hash: hash, Inputs: in})
	})
}

// seal writes the manifest of a finished run and renames its folder. It replaces a damaged run.
func (s *liveStore) seal(dir, name string, m *manifest) error {
	m.Device, m.Program = s.device, s.program
	final := filepath.Join(s.dir, name)
	if there, err := readManifest(final); err == nil && there.Hash != m.Hash {
		final += "-" + m.Hash
	}
	if s.finish != nil {
		if err := s.finish(dir); err != nil {
			return err
		}
	}
	if err := m.write(dir); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(final), os.Rename(dir, final))
}

// claim claims a run for this process until release is called; release is nil if another process
// has claimed it.
func (s *liveStore) claim(p *config.Point) (release func() error, err error) {
	hash, err := s.hash(p)
	if err != nil {
		return nil, err
	}
	return run.Claim(s.dir, hash)
}
