package answers

import (
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
	folders, err := validate.Simulated(dir)
	if err != nil {
		return nil, err
	}
	return onMachines(Validation(r), folders, nil)
}
