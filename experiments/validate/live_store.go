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

// liveStore keeps live runs of several devices and programs side by side, each in a folder of its
// own with a manifest. Several processes may make runs at a time.
type liveStore struct {
	dir             string
	device, program string // that make runs now
	// folder names a run's folder. A run of the same name that another device or program made
	// stays.
	folder func(*config.Point) string
	any    bool // finds runs of the same configuration, whatever profile, device and program made them
	// finish completes the folder of a finished run.
	finish func(dir string) error

	hashes *config.Hasher
	// configurations of kept runs as they are read today, by folder, card and engine
	texts map[[3]string][]byte
}

// openLive makes the folder ready and removes what a killed process left unfinished.
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

// hash names the run of a point by the device and the program, too.
func (s *liveStore) hash(p *config.Point) (string, error) {
	text, in, err := s.hashes.Identity(p)
	base := run.DigestOf(string(text), in.Model, in.Trace)
	return run.DigestOf(base, in.GPU, s.device, s.program), err
}

// find returns the folder of a finished run, "" where there is none. Note says that there is one
// that is not what was put there.
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

// whole says whether all is there that a folder's manifest lists.
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

// same says whether a kept run's configuration, read today, is that of p on whichever card and in
// whichever engine: keys that are newer have their defaults.
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

// seal writes the manifest of a finished run and gives its folder its name, in the place of a
// damaged one.
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

// claim makes a run this process's own until release, which is nil when another process makes it.
func (s *liveStore) claim(p *config.Point) (release func() error, err error) {
	hash, err := s.hash(p)
	if err != nil {
		return nil, err
	}
	return run.Claim(s.dir, hash)
}
