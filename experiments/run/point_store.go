package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// StoreFormat is the layout of the folders that a PointStore keeps.
const StoreFormat = 2

// Files of a point store besides the points.
const (
	storeFile  = "store.json"
	LockFile   = ".lock"
	Unfinished = ".tmp" // ends the folder of a point that runs
)

// StoreVersion is what storeFile holds.
type StoreVersion struct {
	Format  int    `json:"format"`
	Program string `json:"program"`
}

func (v StoreVersion) String() string { return fmt.Sprintf("%q in format %d", v.Program, v.Format) }

// ProgramOf names the program that made the results of a folder of simulate or sweep, as its store
// or the index of the sweep has it; empty where neither says so.
func ProgramOf(dir string) string {
	for _, path := range []string{filepath.Join(pointsFolder, storeFile), indexFile} {
		var v StoreVersion
		text, err := files.ReadResult(filepath.Join(dir, path))
		if err == nil && json.Unmarshal(text, &v) == nil && v.Program != "" {
			return v.Program
		}
	}
	return ""
}

// PointStore keeps finished points:
//
//	store.json     the program that made all results here; not with Makers
//	HASH/          point.json, config.toml, summary.json, requests.csv, …
//	HASH.missed    what a run missed for certain before its end, which ended it
//	HASH.same      the hash of the point whose run is this one's, too
//	.HASH*.tmp/    a point that runs, or whose process was killed
//	.HASH.lock     held by the process that makes the point; see Claim
//
// A point's folder appears whole. Sweeps, plans and the papers' figures may share a store, and
// with it their points.
type PointStore struct {
	Version StoreVersion
	dir     string
	hashes  *config.Hasher
	lock    *os.File
	makers  *Makers
	// configurations of kept points as they are read today, by folder, card and engine
	texts map[[3]string][]byte
	named bool // folders have the points' names, as in the store of a Folder
}

// Makers is the option of a store for points of several devices and programs side by side,
// which several processes may make at a time.
type Makers struct {
	Device, Program string // that make points now
	// Folder names a point's folder. A point of the same name that another device or program
	// made stays, unless Replace is set.
	Folder  func(*config.Point) string
	Replace bool
	// Any finds points of the same configuration, whatever profile, device and program made them.
	Any bool
	// Finish completes the folder of a finished point.
	Finish func(dir string) error
}

// OpenPointStore makes the folder ready for results of a program. Program changes whenever the
// same configuration may give another result. Alone keeps out all other processes and removes
// what a killed one left unfinished; without it, others may open it too that are not alone.
// Results of another program are refused.
func OpenPointStore(dir, program string, alone bool) (*PointStore, error) {
	s, err := lockStore(dir, program, alone)
	if err != nil {
		return nil, err
	}
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

// lockStore opens a store without a look at what it holds.
func lockStore(dir, program string, alone bool) (*PointStore, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := LockFolder(filepath.Join(dir, LockFile), alone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &PointStore{dir: dir, Version: StoreVersion{StoreFormat, program},
		hashes: config.NewHasher(), lock: lock}, nil
}

// OpenShared makes the folder ready for points of makers and removes what a killed process left
// unfinished.
func OpenShared(dir string, makers *Makers) (*PointStore, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &PointStore{dir: dir, hashes: config.NewHasher(), makers: makers,
		texts: map[[3]string][]byte{}}
	left, err := files.Glob(dir, ".*"+Unfinished)
	for _, path := range left {
		release, e := s.ClaimHash(HashOfUnfinished(path))
		if e == nil && release != nil {
			e = errors.Join(os.RemoveAll(path), release())
		}
		err = errors.Join(err, e)
	}
	return s, err
}

// In is the same store in another folder.
func (s *PointStore) In(dir string) *PointStore {
	other := *s
	other.dir, other.texts = dir, map[[3]string][]byte{}
	return &other
}

// Close lets other processes in.
func (s *PointStore) Close() error { return s.lock.Close() }

// checkVersion reads the version of the store, or gives it one when the store is new.
func (s *PointStore) checkVersion() error {
	path := filepath.Join(s.dir, storeFile)
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == storeFile }) {
			return s.checkVersion() // another process has made it since
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				return fmt.Errorf("%s: holds %s but no %s, so no sweep made it; choose another folder", s.dir,
					e.Name(), storeFile)
			}
		}
		return s.writeVersion()
	}
	if err != nil {
		return err
	}
	var have StoreVersion
	if err := files.ParseJSON(path, text, &have); err != nil {
		return fmt.Errorf("%w; restore it, or move the folder away to run everything again", err)
	}
	if have != s.Version {
		return fmt.Errorf("%s: results of another %w of the model (%s, this is %s); "+
			"keep them by choosing another folder, or remove this one to run everything again",
			s.dir, errVersion, have, s.Version)
	}
	return nil
}

func (s *PointStore) writeVersion() error {
	text, err := json.Marshal(s.Version)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(s.dir, storeFile), append(text, '\n'))
}

// errVersion is the error of a store of another version.
var errVersion = errors.New("version")

// leftBehind are names that killed processes leave in a store: a point that ran, its lock, a file
// that was being written. Other hidden files are not the store's.
var leftBehind = regexp.MustCompile(`^\.([0-9a-f]{16}[-.]|store\.json[0-9])`)

// clear removes what killed processes left.
func (s *PointStore) clear() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if leftBehind.MatchString(e.Name()) {
			if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Dir returns the store's folder.
func (s *PointStore) Dir() string { return s.dir }

// Hash names the point among those of the store.
func (s *PointStore) Hash(p *config.Point) (string, error) {
	if s.makers == nil {
		return s.hashes.Hash(p)
	}
	text, in, err := s.hashes.Identity(p)
	base := digestOf(string(text), in.Model, in.Trace)
	return digestOf(base, in.GPU, s.makers.Device, s.makers.Program), err
}

// Find returns the folder of a finished point, "" when there is none. Note says that there is
// one that is not what was put there.
func (s *PointStore) Find(p *config.Point) (dir, note string, err error) {
	hash, err := s.Hash(p)
	if err != nil {
		return "", "", err
	}
	if s.named {
		dir := filepath.Join(s.dir, p.Name)
		if m, err := ReadManifest(dir); err == nil && m.Hash != hash {
			return "", "", nil
		}
		return s.whole(dir, p)
	}
	if s.makers == nil {
		return s.whole(filepath.Join(s.dir, hash), p)
	}
	if dir, note, err = s.FindHash(hash, p); dir != "" || note != "" || err != nil || !s.makers.Any {
		return dir, note, err
	}
	folders, err := s.folders()
	if err != nil {
		return "", "", err
	}
	var found []string
	for _, folder := range folders {
		if !s.same(folder, p) {
			continue
		}
		ok, damage, err := s.whole(folder, p)
		if err != nil {
			return "", "", err
		}
		if note = damage; ok != "" {
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
		"but one",
		p.Name, len(found), strings.Join(found, ", "))
}

// FindHash is Find for a hash, in a store of Makers.
func (s *PointStore) FindHash(hash string, p *config.Point) (dir, note string, err error) {
	folders, err := s.folders()
	if err != nil {
		return "", "", err
	}
	for _, folder := range folders {
		if m, err := ReadManifest(folder); err != nil || m.Hash != hash {
			continue
		}
		if dir, note, err = s.whole(folder, p); dir != "" || err != nil {
			return dir, "", err
		}
	}
	return "", note, nil
}

// folders lists those of finished points.
func (s *PointStore) folders() ([]string, error) {
	return files.Glob(s.dir, "[^.]*")
}

// whole returns the folder if all is there that its manifest lists.
func (s *PointStore) whole(dir string, p *config.Point) (found, note string, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	} else if err != nil {
		return "", "", err
	}
	m, damage := ReadManifest(dir)
	if damage == nil {
		damage = m.check(dir)
	}
	switch {
	case errors.Is(damage, fs.ErrPermission):
		return "", "", damage
	case damage != nil:
		return "", fmt.Sprintf("%s: %v; %s runs again", dir, damage, p.Name), nil
	}
	return dir, "", nil
}

// same says whether a kept point's configuration, read today, is that of p on whichever card and in
// whichever engine: keys that are newer have their defaults.
func (s *PointStore) same(dir string, p *config.Point) bool {
	want, in, err := s.hashes.Identity(p)
	m, damage := ReadManifest(dir)
	if err != nil || damage != nil || m.Inputs.Model != in.Model || m.Inputs.Trace != in.Trace {
		return false
	}
	key := [3]string{dir, p.System.Engine, p.GPU}
	if _, ok := s.texts[key]; !ok {
		s.texts[key] = nil
		if kept, err := config.LoadPoint(filepath.Join(dir, ConfigFile),
			"system.engine="+strconv.Quote(p.System.Engine), "gpu="+strconv.Quote(p.GPU)); err == nil {
			s.texts[key], _ = kept.TOML()
		}
	}
	return s.texts[key] != nil && bytes.Equal(s.texts[key], want)
}

// load returns the summary of a finished point.
func (s *PointStore) load(p *config.Point) (sum sim.Summary, kept bool, note string, err error) {
	dir, note, err := s.Find(p)
	if err != nil || dir == "" {
		return sum, false, note, err
	}
	if sum, err = ReadSummary(dir); err != nil {
		return sim.Summary{}, false, fmt.Sprintf("%v; %s runs again", err, p.Name), nil
	}
	return sum, true, "", nil
}

// Begin implements Keeper.
func (s *PointStore) Begin(p *config.Point) (*PointFiles, error) {
	m := Manifest{Name: p.Name}
	var err error
	if m.Hash, err = s.Hash(p); err != nil {
		return nil, err
	}
	if _, m.Inputs, err = s.hashes.Identity(p); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, "."+m.Hash+Unfinished)
	if s.makers == nil { // processes without locks may make the same point
		dir, err = os.MkdirTemp(s.dir, "."+m.Hash+"-*"+Unfinished)
		err = errors.Join(err, os.Chmod(dir, 0o755))
	} else {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return nil, err
	}
	f, err := beginFiles(dir, p)
	if err != nil {
		return nil, err
	}
	f.seal = func() error { return s.seal(dir, p, &m) }
	return f, nil
}

// seal writes the manifest of a finished point and gives its folder its name, in the place of a
// damaged one.
func (s *PointStore) seal(dir string, p *config.Point, m *Manifest) error {
	final := filepath.Join(s.dir, m.Hash)
	if s.named {
		final = filepath.Join(s.dir, p.Name)
	}
	if s.makers != nil {
		m.Device, m.Program = s.makers.Device, s.makers.Program
		final = filepath.Join(s.dir, s.makers.Folder(p))
		if there, err := ReadManifest(final); err == nil && there.Hash != m.Hash && !s.makers.Replace {
			final += "-" + m.Hash
		}
		if s.makers.Finish != nil {
			if err := s.makers.Finish(dir); err != nil {
				return err
			}
		}
	}
	if err := m.write(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	return os.Rename(dir, final)
}
