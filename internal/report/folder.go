package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// kinds are what a folder may hold, by the file that only it has.
var kinds = []struct {
	file string
	read func(dir string) (*page, error)
}{
	{"whatif.json", readWhatIf},
	{"purchase.json", readPurchase},
	{"plan.json", readPlan},
	{"compare.json", readComparison},
	{"validate.json", readValidation},
	{"fits.csv", readCalibration},
	{"summary.json", readRuns},
}

// read makes the page of what the folder holds.
func read(dir string) (*page, error) {
	kind, err := KindOf(dir)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if k.file == kind {
			return k.read(dir)
		}
	}
	panic("report: no page of " + kind)
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
		"validate or calibrate: none of %s is there; give the folder that such a command names, or "+
		"the same command again if it was interrupted", dir, strings.Join(names, ", "))
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

// addFile adds a file of the folder to those that the page shows, if it is there.
func (p *page) addFile(path, name string) {
	if text, err := files.ReadResult(path); err == nil {
		p.Files = append(p.Files, document{name, string(text)})
	}
}
