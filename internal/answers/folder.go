package answers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// kind is what a folder may hold, known by a file that only it has.
type kind struct {
	file string
	read func(dir string) (*builder, error)
}

// kinds lists them. A folder that has the files of two is of the first.
var kinds = []kind{
	{"whatif.json", readWhatIf},
	{"purchase.json", readPurchase},
	{"plan.json", readPlan},
	{"compare.json", readComparison},
	{ValidationFile, readValidation},
	{fitsFile, readCalibration},
	{DescriptionFile, readTrace},
	{"summary.json", readRuns},
}

// Read makes the document of what a result folder holds.
func Read(dir string) (*doc.Doc, error) {
	kind, err := KindOf(dir)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if k.file == kind {
			b, err := k.read(dir)
			if err != nil {
				return nil, err
			}
			return &b.Doc, nil
		}
	}
	panic("answers: no document of " + kind)
}

// KindOf returns the file of a result folder that says what it holds, as summary.json for runs. A
// folder without results is an error that says so.
func KindOf(dir string) (string, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: no such folder; give the result folder of a command, as its --out "+
			"or its last lines name it", dir)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: a file; want the result folder of a command", dir)
	}
	var names []string
	for _, k := range kinds {
		if _, err := os.Stat(filepath.Join(dir, k.file)); err == nil {
			return k.file, nil
		}
		names = append(names, k.file)
	}
	return "", fmt.Errorf("%s: no finished results of simulate, sweep, plan, whatif, compare, "+
		"validate, calibrate or trace describe: none of %s is there; give the folder that such a "+
		"command names, or the same command again if it was interrupted", dir, strings.Join(names, ", "))
}

// nameOf is the folder's own name.
func nameOf(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return filepath.Base(full)
}

// readJSON reads a file of the folder.
func readJSON(dir, name string, into any) error {
	return files.ReadJSON(filepath.Join(dir, name), into)
}

// readCSV reads a table of the folder that has a row; nil where there is none.
func readCSV(dir, name string) (header []string, rows []map[string]string, err error) {
	path := filepath.Join(dir, name)
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, h := range all[0] {
			row[h] = cells[i]
		}
		rows = append(rows, row)
	}
	return all[0], rows, nil
}

// csvNumber reads a number of a table's row, of which before are above.
func csvNumber(path string, before int, row map[string]string, column string) (float64, error) {
	text, ok := row[column]
	if !ok {
		return 0, fmt.Errorf("%s: no column %q", path, column)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: row %d: %s = %q: want a number", path, before+1, column, text)
	}
	return v, nil
}

// storedRun is a run of summary.json, with what the axes of a sweep set.
type storedRun struct {
	sim.Summary
	Settings map[string]any `json:"settings"`
}

// readRuns makes the document of a simulation or a sweep.
func readRuns(dir string) (*builder, error) {
	var stored []storedRun
	if err := readJSON(dir, "summary.json", &stored); err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		return nil, fmt.Errorf("%s: no run", filepath.Join(dir, "summary.json"))
	}
	folders, swept, err := runFolders(dir)
	if err != nil {
		return nil, err
	}
	r := Runs{Name: nameOf(dir)}
	served := false
	for i := range stored {
		r.Sums = append(r.Sums, stored[i].Summary)
		if swept {
			r.Settings = append(r.Settings, stored[i].Settings)
		}
		served = served || stored[i].Completed > 0
	}
	rests := &builder{}
	if r.Systems, err = rests.restOn(folders, nil); err != nil {
		return nil, err
	}
	configs := configsOf(append([]string{dir}, folders...))
	r.Unit = "requests/s"
	if len(configs) > 0 {
		r.Asked, r.Unit = []string{ran(configs) + "."}, capacity.RateUnit(&configs[0].Workload)
	}
	p := &builder{Doc: *r.Doc()}
	if served {
		drawn, err := figures.RunsData(dir, Ran(dir))
		if err != nil {
			return nil, err
		}
		p.addFigures(drawn)
	}
	p.Tables = append(p.Tables, rests.Tables...)
	p.addFile(filepath.Join(dir, "config.toml"), "config.toml")
	if swept && len(folders) > 0 {
		p.addFile(filepath.Join(folders[0], "config.toml"), "config.toml of the first run, "+
			r.Sums[0].Name)
	}
	return p, nil
}

// runFolders lists the folders of the runs, each with its configuration.
func runFolders(dir string) (folders []string, swept bool, err error) {
	var index struct {
		Points []struct {
			Folder string `json:"folder"`
		} `json:"points"`
	}
	err = readJSON(dir, "sweep.json", &index)
	switch {
	case err == nil:
		for _, point := range index.Points {
			folders = append(folders, filepath.Join(dir, filepath.FromSlash(point.Folder)))
		}
		return folders, true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	if folders = pointFolders(dir); len(folders) == 0 {
		folders = []string{dir}
	}
	return folders, false, nil
}

// pointFolders lists what is in points/ of a folder.
func pointFolders(dir string) (folders []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, "points"))
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders = append(folders, filepath.Join(dir, "points", e.Name()))
		}
	}
	return folders
}
