package papers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// versionFile says which program made the results of an experiment in a Studies's
// folder.
const versionFile = "version.json"

// OtherVersions says which results in a Studies's folder another version of the
// program has made. They can still be drawn.
func OtherVersions(dir, program string) (notes []string, err error) {
	for _, e := range paperExperiments() {
		folder := filepath.Join(dir, e.Name)
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, versionFile)
		text, err := files.ReadResult(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		var have run.StoreVersion
		switch {
		case err != nil || json.Unmarshal(text, &have) != nil:
			notes = append(notes,
				fmt.Sprintf("%s: nothing says which version of the model made this", folder))
		case have.Program != program:
			notes = append(notes,
				fmt.Sprintf("%s: results of another version of the model (%q, this is %q)", folder,
					have.Program, program))
		}
	}
	return notes, nil
}
