package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sparseserve/experiments/config"
	"sparseserve/sim"
)

// StoreFormat is the layout of the folders that a PointStore keeps.
const StoreFormat = 2

// Files of a point store beside the points.
const (
	storeFile    = "store.json"
	LockFile     = ".lock"
	ManifestFile = "point.json"
	Unfinished   = ".tmp" // ends the folder of a point that runs
)

// storeVersion is what storeFile holds.
type StoreVersion struct {
	Format  int    `json:"format"`
	Program string `json:"program"`
}

func (v StoreVersion) String() string { return fmt.Sprintf("%q in format %d", v.Program, v.Format) }

// manifest is written last into a point's folder: what the point depends on
// beside its configuration, and a digest of each of its files.
type Manifest struct {
	Name   string            `json:"name"`
	Hash   string            `json:"hash"`
	Inputs config.Inputs     `json:"inputs"`
	Files  map[string]string `json:"files"` // name -> SHA-256
}

// PointStore keeps finished points for ever:
//
//	store.json     the program that made all results here
//	HASH/          point.json, config.toml, summary.json, requests.csv, …
//	.HASH.tmp/     a point that runs, or was killed while it ran
//
// A point's folder appears whole. Sweeps, plans and the paper's figures may
// share a store, and with it their points.
type PointStore struct {
	dir     string
	Version StoreVersion
	hashes  *config.Hasher
	lock    *os.File
}

// OpenPointStore makes the folder ready for results of a program. Program
// changes whenever the same configuration may give another result. Alone keeps
// out all other processes and clears away what a killed one has left; without
// it, others may open it too that are not alone. Results of another program are
// refused.
func OpenPointStore(dir, program string, alone bool) (*PointStore, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := LockFolder(filepath.Join(dir, LockFile), alone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	s := &PointStore{dir: dir, Version: StoreVersion{StoreFormat, program}, hashes: config.NewHasher(), lock: lock}
	if err := s.checkVersion(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if alone {
		if err := s.clear(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close lets other processes in.
func (s *PointStore) Close() error { return s.lock.Close() }

// checkVersion reads the version of the store, or gives it one when the store
// is new.
func (s *PointStore) checkVersion() error {
	path := filepath.Join(s.dir, storeFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				return fmt.Errorf("%s: holds %s but no %s, so no sweep made it; choose another folder", s.dir, e.Name(), storeFile)
			}
		}
		if text, err = json.Marshal(s.Version); err != nil {
			return err
		}
		return WriteFile(path, append(text, '\n'))
	}
	if err != nil {
		return err
	}
	var have StoreVersion
	if err := json.Unmarshal(text, &have); err != nil {
		return fmt.Errorf("%s: damaged (%w); restore it, or move the folder away to run everything again", path, err)
	}
	if have != s.Version {
		return fmt.Errorf("%s: results of another version of the program (%s, this is %s); "+
			"keep them by choosing another folder, or remove this one to run everything again",
			s.dir, have, s.Version)
	}
	return nil
}

// clear removes what killed processes have left.
func (s *PointStore) clear() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && e.Name() != LockFile {
			if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Dir returns the store's folder.
func (s *PointStore) Dir() string { return s.dir }

// Hash names the point's folder.
func (s *PointStore) Hash(p *config.Point) (string, error) { return s.hashes.Hash(p) }

// folder returns where a point is kept.
func (s *PointStore) folder(hash string) string { return filepath.Join(s.dir, hash) }

// load returns the summary of a finished point. A folder that is not what was
// put there counts as missing, and note says what is wrong with it.
func (s *PointStore) load(p *config.Point) (sum sim.Summary, kept bool, note string, err error) {
	hash, err := s.hashes.Hash(p)
	if err != nil {
		return sum, false, "", err
	}
	dir := s.folder(hash)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return sum, false, "", nil
	} else if err != nil {
		return sum, false, "", err
	}
	damage := ReadPoint(dir, hash, &sum)
	if errors.Is(damage, fs.ErrPermission) {
		return sum, false, "", damage
	}
	if damage != nil {
		return sim.Summary{}, false, fmt.Sprintf("%s: %v; %s runs again", dir, damage, p.Name), nil
	}
	return sum, true, "", nil
}

// readPoint checks a point's folder and reads its summary.
func ReadPoint(dir, hash string, sum *sim.Summary) error {
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no " + ManifestFile)
	}
	if err != nil {
		return err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Hash != hash || m.Files[SummaryFile] == "" || m.Files[ConfigFile] == "" {
		return errors.New(ManifestFile + " is damaged")
	}
	for name, want := range m.Files {
		got, err := digestFile(filepath.Join(dir, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("no " + name)
		}
		if err != nil {
			return err
		}
		if got != want {
			return errors.New(name + " is damaged")
		}
	}
	if text, err = os.ReadFile(filepath.Join(dir, SummaryFile)); err != nil {
		return err
	}
	if err := json.Unmarshal(text, sum); err != nil {
		return fmt.Errorf("%s is damaged: %w", SummaryFile, err)
	}
	return nil
}

func digestFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Begin implements Keeper.
func (s *PointStore) Begin(p *config.Point) (*PointFiles, error) {
	hash, err := s.hashes.Hash(p)
	if err != nil {
		return nil, err
	}
	_, in, err := s.hashes.Identity(p)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, "."+hash+Unfinished)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	f, err := BeginFiles(dir, p)
	if err != nil {
		return nil, err
	}
	f.Seal = func() error { return s.seal(dir, &Manifest{Name: p.Name, Hash: hash, Inputs: in}) }
	return f, nil
}

// seal writes the manifest of a finished point and gives its folder its name.
func (s *PointStore) seal(dir string, m *Manifest) error {
	return Seal(dir, s.folder(m.Hash), m, m)
}

// seal notes the digests of a folder's files in m, writes kept, of which m is
// all or a part, as its manifest, and gives the folder its final name.
func Seal(dir, final string, m *Manifest, kept any) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	m.Files = map[string]string{}
	for _, e := range entries {
		if m.Files[e.Name()], err = digestFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(dir, ManifestFile), append(text, '\n')); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil { // a damaged one
		return err
	}
	return os.Rename(dir, final)
}
