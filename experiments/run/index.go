package run

import (
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
)

// indexFormat is the version of the folder layout.
const indexFormat = 3

// Index describes the content of a result folder. It is written before the first run starts.
type Index struct {
	Format  int        `json:"format"`
	Command string     `json:"command"`
	Version string     `json:"version"` // of the model, or of what makes live runs
	Name    string     `json:"name"`
	Axes    []string   `json:"axes"` // keys
	Runs    []IndexRun `json:"runs"`
	Files   []string   `json:"files"` // of the results
}

// IndexRun is one run with the place of its files.
type IndexRun struct {
	Label string `json:"label"`
	Hash  string `json:"hash"`
	// Folder is relative to the index. The files are in FOLDER.zip, or in packed.zip beside it.
	Folder string         `json:"folder"`
	System string         `json:"system,omitempty"`
	Model  string         `json:"model,omitempty"`
	GPU    string         `json:"gpu,omitempty"`
	Rate   float64        `json:"rate,omitempty"`
	Seed   uint64         `json:"seed,omitempty"`
	Axes   map[string]any `json:"axes,omitempty"` // key -> value
}

// ReadIndex reads the index of a result folder.
func ReadIndex(dir string) (x Index, err error) {
	return x, files.ReadJSON(filepath.Join(dir, IndexFile), &x)
}

// indexOf lists the runs of a question.
func (f *Folder) indexOf(q *Question) (Index, error) {
	x := Index{Format: indexFormat, Command: q.Command, Version: f.Store.version, Name: q.Name,
		Axes: append([]string{}, q.Axes...), Runs: []IndexRun{}, Files: []string{}}
	for i := range q.Runs {
		p := &q.Runs[i]
		hash, err := f.Store.Hash(p)
		if err != nil {
			return x, err
		}
		run, err := f.placed(p.Label(), hash)
		if err != nil {
			return x, err
		}
		run.System, run.Model, run.GPU = p.System.Name, p.Model, p.GPU
		run.Rate, run.Seed, run.Axes = p.Workload.MeanRate(), p.Seed, config.SettingsMap(p.Settings)
		x.Runs = append(x.Runs, run)
	}
	return x, nil
}

// placed returns a run with the place of its files.
func (f *Folder) placed(label, hash string) (IndexRun, error) {
	place, err := filepath.Rel(f.dir, filepath.Join(f.Store.Dir(), hash))
	return IndexRun{Label: label, Hash: hash, Folder: filepath.ToSlash(place)}, err
}

// Place returns the path of a run's files for files.OpenResult; "" if no run has the label.
func (f *Folder) Place(label string) string {
	for _, r := range f.index.Runs {
		if r.Label == label {
			return filepath.Join(f.Store.Dir(), r.Hash)
		}
	}
	return ""
}
