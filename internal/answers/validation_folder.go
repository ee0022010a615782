package answers

import (
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// ValidationFile is the file that identifies a validation's folder.
const ValidationFile = "validate.json"

// readValidation builds the document of a validation's folder.
func readValidation(dir string) (*doc.Doc, error) {
	r, err := validate.Read(dir)
	if err != nil {
		return nil, err
	}
	p := Validation(r)
	folders, err := validate.Simulated(dir)
	if err != nil {
		return nil, err
	}
	if _, err := restOn(p, folders, nil); err != nil {
		return nil, err
	}
	if len(folders) > 0 {
		addFile(p, filepath.Join(folders[0], "config.toml"), "config.toml of a simulated run, "+
			r.Runs[0].Run)
	}
	return p, nil
}
