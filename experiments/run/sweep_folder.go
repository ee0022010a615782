package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
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
	sweep *config.Sweep
	pts   []config.SweepPoint
}

// OpenSweepFolder starts the folder of a sweep for results of a program, as
// OpenPointStore has it. Points are kept in the folder of that name, or with
// the sweep when it is empty. Results in other folders, and of other sweeps in
// this one, stay.
func OpenSweepFolder(dir, points, program string, s *config.Sweep) (*SweepFolder, error) {
	expanded, err := s.Points() // before any folder is made
	if err != nil {
		return nil, err
	}
	if points == "" {
		points = filepath.Join(dir, pointsFolder)
	}
	store, err := OpenPointStore(points, program, true)
	if err != nil {
		return nil, err
	}
	f := &SweepFolder{Store: store, dir: dir, sweep: s, pts: expanded}
	if err := f.start(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return f, nil
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

// Close closes the store.
func (f *SweepFolder) Close() error { return f.Store.Close() }

// Points lists the sweep's points.
func (f *SweepFolder) Points() []config.Point {
	points := make([]config.Point, len(f.pts))
	for i := range f.pts {
		points[i] = f.pts[i].Point
	}
	return points
}

// Variants names what the axes set at each of the sweep's points, besides
// system, rate and seed.
func (f *SweepFolder) Variants() []string {
	names := make([]string, len(f.pts))
	for i := range f.pts {
		names[i] = strings.TrimSpace(config.SettingsLabel(f.pts[i].Settings))
	}
	return names
}

// start writes the index and removes the tables of an earlier one.
func (f *SweepFolder) start() error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	f.index = SweepIndex{Format: StoreFormat, Program: f.Store.Version.Program, Name: f.sweep.Name, Axes: slices.Concat([]string{}, f.sweep.Axes)}
	for i := range f.pts {
		p := &f.pts[i]
		folder, err := filepath.Rel(f.dir, filepath.Join(f.Store.Dir(), p.Hash))
		if err != nil {
			return err
		}
		f.index.Points = append(f.index.Points, IndexPoint{
			Label: p.Label, Hash: p.Hash, Folder: filepath.ToSlash(folder), System: p.System.Name,
			Model: p.Model, GPU: p.GPU, Rate: p.Workload.MeanRate(), Seed: p.Seed, Axes: config.SettingsMap(p.Settings),
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
