package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// File is a file of results.
type File struct {
	Name string
	Text []byte
}

// WriteFiles writes files into a folder and returns their paths.
func WriteFiles(dir string, all ...File) (paths []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, file := range all {
		path := filepath.Join(dir, file.Name)
		if err := WriteFile(path, file.Text); err != nil {
			return paths, KeptWhenFull(err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Write writes results and returns the paths of all files of the folder except run files.
func (f *Folder) Write(all ...File) ([]string, error) {
	before := f.index.Files
	f.index.Files = nil
	for _, file := range all {
		f.index.Files = append(f.index.Files, file.Name)
	}
	before = slices.DeleteFunc(slices.Clone(before),
		func(name string) bool { return slices.Contains(f.index.Files, name) })
	if err := f.removeFiles(before); err != nil {
		return nil, err
	}
	if f.question.Runs == nil && !f.shared {
		f.index.Runs = nil
		for _, run := range f.Store.used() {
			placed, err := f.placed(run.label, run.hash)
			if err != nil {
				return nil, err
			}
			f.index.Runs = append(f.index.Runs, placed)
		}
	}
	if err := f.writeIndex(); err != nil {
		return nil, err
	}
	paths, err := WriteFiles(f.dir, all...)
	if f.question.Config != nil {
		paths = slices.Insert(paths, 0, filepath.Join(f.dir, ConfigFile))
	}
	return append(paths, filepath.Join(f.dir, QuestionFile), filepath.Join(f.dir, IndexFile)), err
}

// Finish writes the tables of the results. Summaries are named by the labels of the runs.
func (f *Folder) Finish(results []Result) ([]string, error) {
	byHash := map[string]*config.Point{}
	for i := range f.question.Runs {
		byHash[f.index.Runs[i].Hash] = &f.question.Runs[i]
	}
	rows := make([]Row, len(results))
	for i := range results {
		hash, err := f.Store.Hash(&results[i].Point)
		if err != nil {
			return nil, err
		}
		rows[i] = Row{Summary: results[i].Summary, hash: hash}
		if p := byHash[hash]; p != nil {
			rows[i].Name = p.Label()
			if len(f.question.Axes) > 0 {
				rows[i].Settings = config.SettingsMap(p.Settings)
			}
		}
	}
	text, err := Marshal(rows)
	if err != nil {
		return nil, err
	}
	return f.Write(File{SummaryFile, text}, File{summaryCSV, f.tabulate(rows)})
}

// Row is a run of summary.json.
type Row struct {
	metrics.Summary
	Settings map[string]any `json:"settings,omitempty"` // of the axes of a sweep
	hash     string
}

// ReadRows reads summary.json of a result folder. No run is an error.
func ReadRows(dir string) (rows []Row, err error) {
	path := filepath.Join(dir, SummaryFile)
	if err = files.ReadJSON(path, &rows); err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: no run", path)
	}
	return rows, err
}

// tabulate writes the table of summaries, preceded by the hash and one column per axis.
func (f *Folder) tabulate(rows []Row) []byte {
	sums := make([]metrics.Summary, len(rows))
	for i := range rows {
		sums[i] = rows[i].Summary
	}
	t := tabulate(sums)
	for i, row := range t.rows {
		head := append([]string{"hash"}, f.question.Axes...)
		if i > 0 {
			head = []string{rows[i-1].hash}
			for _, key := range f.question.Axes {
				head = append(head, cell(rows[i-1].Settings[key]))
			}
		}
		t.rows[i] = append(head, row...)
	}
	return t.Bytes()
}

// cell formats an axis value for a table; "" if the run has none.
func cell(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return text
	}
	return strings.TrimSpace(config.Show(v))
}
