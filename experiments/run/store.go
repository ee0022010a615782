package run

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Files of a store besides the runs.
const (
	LockFile   = ".lock"
	Unfinished = ".tmp" // ends the folder of a run that is being made
)

// Store keeps finished runs, each under a hash of everything that its results depend on:
//
//	HASH.zip      config.toml, summary.json, requests.csv, … of a run, below HASH/
//	packed.zip    the same for many runs; see Pack
//	.HASH*.tmp/   a run in progress, or of a killed process
//	.HASH.lock    held by the process that makes the run; see Claim
//
// A run appears whole. Commands may share a store and its runs.
type Store struct {
	dir, version string
	hashes       *config.Hasher
	lock         *os.File
	packed       *zip.Reader // nil: there is none
	packedFile   io.Closer
	packedErr    error // of a damaged one

	mu        sync.Mutex
	forgotten map[string]bool
	names     map[string]string // of the runs that were read or made, by hash
	damaged   map[string]string // notes on runs that are made again, by hash
}

// OpenStore prepares the folder for runs of a program version: ModelVersion, or the version of live
// runs with all their dependencies. With alone, it locks out all other processes and removes
// unfinished files of killed ones; without, several processes may open it together.
func OpenStore(dir, version string, alone bool) (*Store, error) {
	lock, err := lockDir(dir, alone)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, version: version, hashes: config.NewHasher(), lock: lock,
		forgotten: map[string]bool{}, names: map[string]string{},
		damaged: map[string]string{}}
	err = s.checkMaker()
	if err == nil && alone {
		err = s.clear()
	}
	if err == nil {
		err = s.openPacked()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openPacked opens the archive of many runs. A damaged archive counts as empty.
func (s *Store) openPacked() (err error) {
	s.packed, s.packedFile, err = files.OpenArchive(filepath.Join(s.dir, files.Packed))
	if errors.Is(err, zip.ErrFormat) {
		s.packedErr, err = err, nil
	}
	return ignoreAbsent(err)
}

// Close unlocks the store.
func (s *Store) Close() error {
	if s.packedFile != nil {
		return errors.Join(s.packedFile.Close(), s.lock.Close())
	}
	return s.lock.Close()
}

// ours matches the names of a store's files.
var ours = regexp.MustCompile(`^([0-9a-f]{16}|packed)\.zip$`)

// checkMaker refuses a folder that contains files but none of a store.
func (s *Store) checkMaker() error {
	entries, err := os.ReadDir(s.dir)
	strange := ""
	for _, e := range entries {
		switch {
		case ours.MatchString(e.Name()):
			return nil
		case strange == "" && e.Name()[0] != '.':
			strange = e.Name()
		}
	}
	if strange != "" {
		err = fmt.Errorf("%s: holds %s and no runs of this version of sparseserve; choose another folder",
			s.dir, strange)
	}
	return err
}

// leftBehind matches names of files that killed processes leave in a store. Other hidden files
// belong to the user.
var leftBehind = regexp.MustCompile(`^\.([0-9a-f]{16}[-.]|packed\.zip[0-9])`)

// clear removes leftovers of killed processes.
func (s *Store) clear() error {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if leftBehind.MatchString(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// Hash returns the name of a point's run in the store.
func (s *Store) Hash(p *config.Point) (string, error) {
	hash, err := s.hashes.Hash(p)
	return DigestOf(hash, s.version), err
}

// DigestOf returns a digest of texts, delimited by their lengths.
func DigestOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Find returns the path of a finished run for files.OpenResult; "" if there is none. Note reports a
// run whose content has changed.
func (s *Store) Find(p *config.Point) (dir, note string, err error) {
	hash, err := s.Hash(p)
	if err != nil {
		return "", "", err
	}
	if _, kept, err := s.load(p); !kept || err != nil {
		return "", s.damaged[hash], err
	}
	return filepath.Join(s.dir, hash), "", nil
}

// Notes names the damaged runs that were found, which are made again.
func (s *Store) Notes() []string { return slices.Sorted(maps.Values(s.damaged)) }

// load returns the summary of a finished run after it has checked all its files.
func (s *Store) load(p *config.Point) (sum metrics.Summary, kept bool, err error) {
	hash, err := s.Hash(p)
	if err != nil {
		return sum, false, err
	}
	s.mu.Lock()
	forgotten := s.forgotten[hash]
	s.mu.Unlock()
	if forgotten {
		return sum, false, nil
	}
	path := filepath.Join(s.dir, hash+files.ArchiveEnding)
	archive, file, err := files.OpenArchive(path)
	if err == nil {
		defer file.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(s.dir, files.Packed)
		archive, err = s.packed, s.packedErr
		if archive == nil && err == nil {
			return sum, false, nil
		}
	}
	if err == nil {
		if _, absent := fs.Stat(archive, hash); absent != nil {
			return sum, false, nil
		}
		if sum, err = whole(archive, hash); err != nil {
			err = fmt.Errorf("%s: damaged: %w", path, err)
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return sum, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.damaged[hash] = fmt.Sprintf("%v; %s runs again", err, p.Name)
		return sum, false, nil
	}
	s.names[hash] = p.Name
	return sum, true, nil
}

// whole reads all files of a run, which verifies their checksums in the archive, and returns its
// summary.
func whole(archive fs.FS, hash string) (sum metrics.Summary, err error) {
	entries, err := fs.ReadDir(archive, hash)
	if err != nil {
		return sum, err
	}
	var text []byte
	for _, e := range entries {
		name := hash + "/" + e.Name()
		if e.Name() == SummaryFile {
			text, err = fs.ReadFile(archive, name)
		} else {
			err = drain(archive, name)
		}
		if err != nil {
			return sum, fmt.Errorf("%s: %w", name, err)
		}
	}
	return sum, json.Unmarshal(text, &sum)
}

// drain reads a file to its end.
func drain(archive fs.FS, name string) error {
	f, err := archive.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// ReadSummary reads the summary of a run at a path from Find.
func ReadSummary(dir string) (sum metrics.Summary, err error) {
	return sum, files.ReadJSON(filepath.Join(dir, SummaryFile), &sum)
}

// Forget removes the runs of points, so that they are made again.
func (s *Store) Forget(points []config.Point) error {
	for i := range points {
		hash, err := s.Hash(&points[i])
		if err != nil {
			return err
		}
		s.forgotten[hash] = true
	}
	return nil
}

// Begin implements Keeper.
func (s *Store) Begin(p *config.Point) (*RunFiles, error) {
	hash, err := s.Hash(p)
	if err != nil {
		return nil, err
	}
	// processes without locks may make the same run
	dir, err := os.MkdirTemp(s.dir, "."+hash+"-*"+Unfinished)
	if err != nil {
		return nil, err
	}
	return NewRunFiles(dir, p, func() error {
		path := filepath.Join(s.dir, hash+files.ArchiveEnding)
		if err := archiveFolder(path, hash, dir); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.forgotten, hash)
		s.names[hash] = p.Name
		return os.RemoveAll(dir)
	})
}

// usedRun is a run that a command has read or made.
type usedRun struct{ label, hash string }

// used lists the runs that were read or made, by name.
func (s *Store) used() (runs []usedRun) {
	for hash, label := range s.names {
		runs = append(runs, usedRun{label, hash})
	}
	slices.SortFunc(runs, func(a, b usedRun) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.hash, b.hash))
	})
	return runs
}
