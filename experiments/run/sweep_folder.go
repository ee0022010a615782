package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// Files of a sweep's folder.
const (
	indexFile = "sweep.json"
	sweepCSV  = "sweep.csv"
)

// SweepIndex lists the points of a sweep: what its result folder holds. It is
// written before anything runs.
type SweepIndex struct {
	Format  int          `json:"format"`
	Program string       `json:"program"`
	Name    string       `json:"name"`
	Axes    []string     `json:"axes"` // keys
	Points  []IndexPoint `json:"points"`
}

// IndexPoint is one point of a sweep and where its files are.
type IndexPoint struct {
	Label  string         `json:"label"`
	Hash   string         `json:"hash"`
	Folder string         `json:"folder"` // from the index
	System string         `json:"system"`
	Model  string         `json:"model"`
	GPU    string         `json:"gpu"`
	Rate   float64        `json:"rate"`
	Seed   uint64         `json:"seed"`
	Axes   map[string]any `json:"axes"` // key -> value
}

// SweepFolder is where a sweep's results go:
//
//	sweep.json     every point: its axes, hash and folder
//	summary.json   one object a finished point, with its axes
//	sweep.csv      the same as a table, with the axes as columns
//	points/        the PointStore, unless that is elsewhere
type SweepFolder struct {
	Store *PointStore
	dir   string
	index SweepIndex
	lock  *os.File // of dir, where the points are kept elsewhere
	sweep *config.Sweep
	pts   []config.SweepPoint
}

// OpenSweepFolder starts the folder of a sweep for results of a program, as
// OpenPointStore has it. Points are kept in the folder of that name, or with
// the sweep when it is empty. Results in other folders, and of other sweeps in
// this one, stay. A folder with finished points that are none of this sweep's is ErrTaken, as its
// tables would lose them; with replace the tables and pictures make way, and the points stay.
func OpenSweepFolder(dir, points, program string, s *config.Sweep,
	replace bool) (*SweepFolder, error) {
	expanded, err := s.Points() // before any folder is made
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkSweepMaker(dir), files.CheckFolder(dir, s.Paths()...)); err != nil {
		return nil, err
	}
	f := &SweepFolder{dir: dir, sweep: s, pts: expanded}
	if points == "" {
		points = filepath.Join(dir, pointsFolder)
	} else if filepath.Clean(points) == filepath.Clean(dir) {
		return nil, fmt.Errorf("--points %s: is the result folder; choose a folder within it or another",
			points)
	} else if f.lock, err = LockDir(dir); err != nil {
		return nil, err
	}
	if f.Store, err = OpenPointStore(points, program, true); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	prepare := f.continues
	if replace {
		prepare = func() error { return clearPictures(dir) }
	}
	if err := prepare(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkSweepMaker refuses a folder of results that no sweep has made.
func checkSweepMaker(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, indexFile)); err == nil {
		return nil
	}
	for _, name := range []string{ConfigFile, SummaryFile, summaryCSV} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s: holds %s, but not from a sweep; choose another folder", dir, name)
		}
	}
	return nil
}

// LockDir makes a folder and keeps other processes out of it.
func LockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := LockFolder(filepath.Join(dir, LockFile), true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return lock, nil
}

// continues refuses a folder whose index has finished points that are none of this sweep's.
func (f *SweepFolder) continues() error {
	var before SweepIndex
	err := files.ReadJSON(filepath.Join(f.dir, indexFile), &before)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrTaken)
	}
	own := map[string]bool{}
	for i := range f.pts {
		own[f.pts[i].Hash] = true
	}
	for _, p := range before.Points {
		if own[p.Hash] {
			continue
		}
		if _, err := os.Stat(filepath.Join(f.dir, filepath.FromSlash(p.Folder),
			ManifestFile)); err == nil {
			return fmt.Errorf("%s: holds results of another sweep (%s of other settings or inputs): %w",
				f.dir, p.Label, ErrTaken)
		}
	}
	return nil
}

// clearPictures removes the pictures of a result folder, each of which has its figures in a CSV of
// the same name.
func clearPictures(dir string) (err error) {
	for _, format := range []string{".png", ".svg", ".pdf"} {
		pictures, e := files.Glob(dir, "*"+format)
		err = errors.Join(err, e)
		for _, path := range pictures {
			if _, e := os.Stat(strings.TrimSuffix(path, format) + ".csv"); e == nil {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}
	return err
}

// StartSweepFolder starts the folder of a sweep whose points are kept in store.
func StartSweepFolder(dir string, store *PointStore, s *config.Sweep) (*SweepFolder, error) {
	expanded, err := s.Points()
	if err != nil {
		return nil, err
	}
	f := &SweepFolder{Store: store, dir: dir, sweep: s, pts: expanded}
	return f, f.start()
}

// Close lets other processes in.
func (f *SweepFolder) Close() (err error) {
	if f.Store != nil {
		err = f.Store.Close()
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// Dir returns the result folder.
func (f *SweepFolder) Dir() string { return f.dir }

// Points lists the sweep's points.
func (f *SweepFolder) Points() []config.Point {
	points := make([]config.Point, len(f.pts))
	for i := range f.pts {
		points[i] = f.pts[i].Point
	}
	return points
}

// Settings is what the axes set at each of the sweep's points, by key.
func (f *SweepFolder) Settings() []map[string]any {
	all := make([]map[string]any, len(f.pts))
	for i := range f.pts {
		all[i] = config.SettingsMap(f.pts[i].Settings)
	}
	return all
}

// start writes the index and removes the tables of an earlier one.
func (f *SweepFolder) start() error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	f.index = SweepIndex{Format: StoreFormat, Program: f.Store.Version.Program, Name: f.sweep.Name,
		Axes: slices.Concat([]string{}, f.sweep.Axes)}
	for i := range f.pts {
		p := &f.pts[i]
		folder, err := filepath.Rel(f.dir, filepath.Join(f.Store.Dir(), p.Hash))
		if err != nil {
			return err
		}
		f.index.Points = append(f.index.Points, IndexPoint{
			Label: p.Label, Hash: p.Hash, Folder: filepath.ToSlash(folder), System: p.System.Name,
			Model: p.Model, GPU: p.GPU, Rate: p.Workload.MeanRate(), Seed: p.Seed,
			Axes: config.SettingsMap(p.Settings),
		})
	}
	for _, name := range []string{SummaryFile, sweepCSV} {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := ClearLeft(f.dir, indexFile, SummaryFile, sweepCSV); err != nil {
		return err
	}
	text, err := json.MarshalIndent(&f.index, "", "  ")
	if err != nil {
		return err
	}
	return KeptWhenFull(WriteFile(filepath.Join(f.dir, indexFile), append(text, '\n')))
}

// Finish writes the tables of the results and names the files of the folder,
// points apart. Summaries bear the labels of the sweep.
func (f *SweepFolder) Finish(results []Result) ([]string, error) {
	byHash := map[string]*config.SweepPoint{}
	for i := range f.pts {
		byHash[f.pts[i].Hash] = &f.pts[i]
	}
	sums := Summaries(results)
	points := make([]*config.SweepPoint, len(results))
	for i := range results {
		hash, err := f.Store.Hash(&results[i].Point)
		if err != nil {
			return nil, err
		}
		points[i] = byHash[hash]
		sums[i].Name = points[i].Label
	}
	text, err := marshalSweep(points, sums)
	if err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(f.dir, SummaryFile), text); err != nil {
		return nil, KeptWhenFull(err)
	}
	if err := WriteFile(filepath.Join(f.dir, sweepCSV), f.tabulate(points, sums)); err != nil {
		return nil, KeptWhenFull(err)
	}
	var files []string
	for _, name := range []string{indexFile, SummaryFile, sweepCSV} {
		files = append(files, filepath.Join(f.dir, name))
	}
	return files, nil
}

// marshalSweep adds to each summary what the axes set.
func marshalSweep(points []*config.SweepPoint, sums []sim.Summary) ([]byte, error) {
	type row struct {
		*sim.Summary
		Settings map[string]any `json:"settings"`
	}
	rows := make([]row, len(sums))
	for i := range sums {
		rows[i] = row{&sums[i], config.SettingsMap(points[i].Settings)}
	}
	return Marshal(rows)
}

// tabulate puts a column for each axis before the columns of a summary.
func (f *SweepFolder) tabulate(points []*config.SweepPoint, sums []sim.Summary) []byte {
	t := tabulate(sums)
	for i, row := range t.rows {
		head := append([]string{"hash"}, f.sweep.Axes...)
		if i > 0 {
			p := points[i-1]
			values := config.SettingsMap(p.Settings)
			head = []string{p.Hash}
			for _, key := range f.sweep.Axes {
				head = append(head, cell(values[key]))
			}
		}
		t.rows[i] = append(head, row...)
	}
	return t.Bytes()
}

// cell prints an axis's value in a table; empty when the point has none.
func cell(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return text
	}
	return strings.TrimSpace(config.Show(v))
}
