package papers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// OtherVersions lists the results in a Studies folder that another version of the model made. They
// can still be drawn.
func OtherVersions(dir, version string) (notes []string, err error) {
	for _, e := range paperExperiments() {
		folder := filepath.Join(dir, e.Name)
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		switch index, err := run.ReadIndex(folder); {
		case err != nil:
			notes = append(notes,
				fmt.Sprintf("%s: nothing says which version of the model made this", folder))
		case index.Version != version:
			notes = append(notes,
				fmt.Sprintf("%s: results of another version of the model (%q, this is %q)", folder,
					index.Version, version))
		}
	}
	return notes, nil
}
