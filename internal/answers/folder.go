package answers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
)

// kind is a kind of result folder, identified by a file that no other kind has.
type kind struct {
	file string
	read func(dir string) (*doc.Doc, error)
}

// kinds lists all kinds of folders. If a folder matches two kinds, the first holds.
var kinds = []kind{
	{"whatif.json", readWhatIf},
	{"purchase.json", readPurchase},
	{capacity.GoodputFile, readGoodput},
	{"compare.json", readComparison},
	{ValidationFile, readValidation},
	{fitsFile, readCalibration},
	{DescriptionFile, readTrace},
	{run.SummaryFile, readRuns},
}

// Read builds the document of a result folder.
func Read(dir string) (*doc.Doc, error) {
	kind, err := KindOf(dir)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if k.file == kind {
			return k.read(dir)
		}
	}
	panic("answers: no document of " + kind)
}

// KindOf returns the name of the file that identifies a result folder, such as summary.json for
// runs. A folder without results is an error.
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

// nameOf returns the folder's own name.
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
