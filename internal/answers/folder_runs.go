package answers

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// storedRun is a run of summary.json, with the axis settings of a sweep.
type storedRun struct {
	sim.Summary
	Settings map[string]any `json:"settings"`

	dir    string // the result folder
	folder string // the run's own; "" where there is none
}

// readSeveral builds the document of the runs of several folders, each run once.
func readSeveral(dirs []string) (*doc.Doc, error) {
	var each []string
	for _, dir := range dirs {
		kind, err := KindOf(dir)
		if err == nil && kind != run.SummaryFile {
			err = fmt.Errorf("%s: holds %s, which is shown by itself; give it alone", dir, kind)
		}
		if err != nil {
			return nil, err
		}
		if dir = filepath.Clean(dir); !slices.Contains(each, dir) {
			each = append(each, dir)
		}
	}
	return readRuns(each...)
}

// readRuns builds the document of simulations and sweeps.
func readRuns(dirs ...string) (*doc.Doc, error) {
	var stored []storedRun
	var folders, names []string
	var r Runs
	swept := len(dirs) > 1
	for _, dir := range dirs {
		more, own, axes, err := storedRuns(dir)
		if err != nil {
			return nil, err
		}
		stored, folders, swept = append(stored, more...), append(folders, own...), swept || axes
		names = append(names, nameOf(dir))
	}
	if len(dirs) > 1 {
		stored = tellApart(stored)
	}
	for i := range stored {
		r.Sums = append(r.Sums, stored[i].Summary)
		r.Folders = append(r.Folders, stored[i].folder)
		if swept {
			r.Settings = append(r.Settings, stored[i].Settings)
		}
	}
	r.Name = strings.Join(names, ", ")
	var rests doc.Doc
	var err error
	if r.Systems, err = restOn(&rests, folders, nil); err != nil {
		return nil, err
	}
	r.Unit = "requests/s"
	if configs := configsIn(dirs); len(configs) > 0 {
		r.Asked, r.Unit = []string{ran(configs) + "."}, capacity.RateUnit(&configs[0].Workload)
	}
	p := r.Doc()
	if p.Figures, err = r.Figures(); err != nil {
		return nil, err
	}
	p.Tables = append(p.Tables, rests.Tables...)
	p.Warnings = append(p.Warnings, withoutRequests(stored)...)
	for i, dir := range dirs {
		name := run.ConfigFile
		if len(dirs) > 1 {
			name = names[i] + "/" + name
		}
		addFile(p, filepath.Join(dir, run.ConfigFile), name)
	}
	if len(dirs) == 1 && swept && folders[0] != "" {
		addFile(p, filepath.Join(folders[0], run.ConfigFile), "config.toml of the first run, "+
			r.Sums[0].Name)
	}
	return p, nil
}

// storedRuns reads the runs of a result folder and lists their folders. swept is set if the folder
// holds a sweep.
func storedRuns(dir string) (stored []storedRun, folders []string, swept bool, err error) {
	if err := readJSON(dir, run.SummaryFile, &stored); err != nil {
		return nil, nil, false, err
	}
	if len(stored) == 0 {
		return nil, nil, false, fmt.Errorf("%s: no run", filepath.Join(dir, run.SummaryFile))
	}
	of, folders, swept, err := runFolders(dir)
	for i := range stored {
		stored[i].dir, stored[i].folder = dir, of[stored[i].Name]
	}
	return stored, folders, swept, err
}

// withoutRequests warns of runs that served requests and whose requests.csv is not kept.
func withoutRequests(stored []storedRun) []doc.Warning {
	served := where(stored, func(s *storedRun) bool { return s.Completed > 0 })
	without := where(served, func(s *storedRun) bool {
		return s.folder == "" || !files.HasResult(filepath.Join(s.folder, run.RequestsCSV))
	})
	if len(without) == 0 {
		return nil
	}
	return []doc.Warning{{Text: fmt.Sprintf("%d of %d runs have no %s, so the distributions of "+
		"latencies lack them; the command that made the folder makes them again", len(without),
		len(served), run.RequestsCSV)}}
}

// runFolders lists the folders of the runs, each with its configuration. of maps the label of a run
// to its folder. swept is set if axes distinguish the runs. A folder without an index has at most
// its own configuration.
func runFolders(dir string) (of map[string]string, folders []string, swept bool, err error) {
	index, err := run.ReadIndex(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []string{dir}, false, nil
	}
	of = map[string]string{}
	for _, r := range index.Runs {
		folder := filepath.Join(dir, filepath.FromSlash(r.Folder))
		of[r.Label], folders = folder, append(folders, folder)
	}
	return of, folders, len(index.Axes) > 0, err
}
