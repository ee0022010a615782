package validate

import (
	"bytes"
	"compress/gzip"
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
	"sparseserve/experiments/run"
	"sparseserve/sim"
)

// Folders of a validation's result folder; each holds a folder a run.
const (
	liveFolder      = "live"
	simulatedFolder = "simulated"
)

// callsFile holds what each step of a live run asked of the device.
const callsFile = "calls.json.gz"

// keptRun is point.json of a validation's run: the manifest, and what the run
// depends on beside what that says.
type keptRun struct {
	run.Manifest
	Base    string `json:"base"`             // of configuration, model and trace
	Device  string `json:"device,omitempty"` // empty for a simulated run
	Program string `json:"program"`
}

// validationStore keeps the runs of one kind, live or simulated, in dir:
//
//	KEY/        point.json, config.toml, summary.json, requests.csv.gz, steps.csv.gz
//	.KEY.tmp/   a run that goes on, or was killed
//	.KEY.lock   held by the process that makes it
//
// The key stands for the configuration, what it names, the device and the
// program. It implements Keeper.
type validationStore struct {
	dir     string
	device  string
	program string
	hashes  *config.Hasher
	more    func(dir string) error // writes what else is kept of a finished run; nil nothing
	anyMade bool                   // runs of another profile, device and program count too
}

// newValidationStore makes the folder and clears away what a killed process has
// left.
func newValidationStore(dir, device, program string, hashes *config.Hasher) (*validationStore, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &validationStore{dir: dir, device: device, program: program, hashes: hashes}
	left, err := filepath.Glob(filepath.Join(dir, ".*"+run.Unfinished))
	for _, path := range left {
		release, e := s.lock(strings.TrimSuffix(path, run.Unfinished) + claimSuffix)
		if e == nil && release != nil {
			e = errors.Join(os.RemoveAll(path), release())
		}
		err = errors.Join(err, e)
	}
	return s, err
}

// claimSuffix ends the name of the file that the maker of a run locks.
const claimSuffix = ".lock"

// claim makes a run this process's own until release, nil when it is another's.
func (s *validationStore) claim(p *config.Point) (release func() error, err error) {
	run, err := s.identify(p)
	if err != nil {
		return nil, err
	}
	return s.lock(filepath.Join(s.dir, "."+run.Hash+claimSuffix))
}

// lock locks a file and returns what unlocks and removes it, nil when another
// process holds it.
func (s *validationStore) lock(path string) (release func() error, err error) {
	for {
		f, err := run.LockFolder(path, true)
		if errors.Is(err, run.ErrLocked) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		if err := f.Close(); err != nil { // who held it has removed it since it was opened
			return nil, err
		}
	}
}

// identify says what a run depends on, and its key.
func (s *validationStore) identify(p *config.Point) (run keptRun, err error) {
	text, in, err := s.hashes.Identity(p)
	if err != nil {
		return run, err
	}
	run.Name, run.Inputs, run.Device, run.Program = p.Name, in, s.device, s.program
	run.Base = digestOf(string(text), in.Model, in.Trace)
	run.Hash = digestOf(run.Base, in.GPU, run.Device, run.Program)
	return run, nil
}

func digestOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// find returns the folder of a finished run, "" when there is none. Note says
// that there is one but damaged.
func (s *validationStore) find(p *config.Point) (dir, note string, err error) {
	want, err := s.identify(p)
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(s.dir, want.Hash)
	if _, err := os.Stat(dir); err == nil {
		var sum sim.Summary
		damage := run.ReadPoint(dir, want.Hash, &sum)
		if damage == nil {
			return dir, "", nil
		}
		return "", fmt.Sprintf("%s: %v; %s runs again", dir, damage, p.Name), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	if !s.anyMade {
		return "", "", nil
	}
	return s.findBase(p, want.Base)
}

// findBase looks for the run of the same configuration, model and trace.
func (s *validationStore) findBase(p *config.Point, base string) (dir, note string, err error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*", run.ManifestFile))
	if err != nil {
		return "", "", err
	}
	var found []string
	for _, path := range paths {
		var simulate keptRun
		text, err := os.ReadFile(path)
		if err != nil {
			return "", "", err
		}
		if json.Unmarshal(text, &simulate) != nil || simulate.Base != base && !s.same(filepath.Dir(path), &simulate, p) {
			continue
		}
		var sum sim.Summary
		if damage := run.ReadPoint(filepath.Dir(path), filepath.Base(filepath.Dir(path)), &sum); damage != nil {
			note = fmt.Sprintf("%s: %v", filepath.Dir(path), damage)
			continue
		}
		found = append(found, filepath.Dir(path))
	}
	switch len(found) {
	case 0:
		return "", note, nil
	case 1:
		return found[0], "", nil
	}
	return "", "", fmt.Errorf("%s is kept %d times, of other devices or programs: %s; remove all but one", p.Name, len(found), strings.Join(found, ", "))
}

// same says whether a kept run's configuration, read today, is that of a point:
// keys that have come since have their defaults.
func (s *validationStore) same(dir string, simulate *keptRun, p *config.Point) bool {
	want, in, err := s.hashes.Identity(p)
	if err != nil || simulate.Inputs.Model != in.Model || simulate.Inputs.Trace != in.Trace {
		return false
	}
	kept, err := config.LoadSweep(filepath.Join(dir, run.ConfigFile), nil)
	if err != nil {
		return false
	}
	points, err := kept.Points()
	if err != nil || len(points) != 1 {
		return false
	}
	got, err := points[0].TOML()
	return err == nil && bytes.Equal(got, want)
}

// Begin implements Keeper.
func (s *validationStore) Begin(p *config.Point) (*run.PointFiles, error) {
	simulate, err := s.identify(p)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, "."+simulate.Hash+run.Unfinished)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	f, err := run.BeginFiles(dir, p)
	if err != nil {
		return nil, err
	}
	f.Seal = func() error { return s.seal(dir, &simulate) }
	return f, nil
}

// seal compresses the tables of a finished run, writes its manifest and gives
// its folder its name.
func (s *validationStore) seal(dir string, simulate *keptRun) error {
	for _, name := range []string{run.RequestsCSV, run.StepsCSV} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := errors.Join(writeGzip(path+".gz", text), os.Remove(path)); err != nil {
			return err
		}
	}
	if s.more != nil {
		if err := s.more(dir); err != nil {
			return err
		}
	}
	return run.Seal(dir, filepath.Join(s.dir, simulate.Hash), &simulate.Manifest, simulate)
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

func readGzip(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// readSummary reads a run's summary.
func readSummary(dir string) (sum sim.Summary, err error) {
	path := filepath.Join(dir, run.SummaryFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return sum, err
	}
	if err := json.Unmarshal(text, &sum); err != nil {
		return sum, fmt.Errorf("%s: %w", path, err)
	}
	return sum, nil
}
