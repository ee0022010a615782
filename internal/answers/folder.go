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

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
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
	{run.SummaryFile, func(dir string) (*builder, error) { return readRuns(dir) }},
}

// Read makes the document of what a result folder holds, or of the runs of several. What equally
// named systems of these have otherwise is as if the axes of a sweep had set it.
func Read(dir string, others ...string) (*doc.Doc, error) {
	kind, err := KindOf(dir)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return readSeveral(append([]string{dir}, others...))
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
	for _, old := range []string{"sweep.json", "question.txt", "points/store.json"} {
		if _, err := os.Stat(filepath.Join(dir, old)); err == nil {
			return "", fmt.Errorf("%s: of an older version of sparseserve (%s); give the command again", dir,
				old)
		}
	}
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
