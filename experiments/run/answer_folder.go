package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/internal/files"
)

// QuestionFile has what the answer in a folder is to.
const QuestionFile = "question.txt"

// OpenAnswer makes a folder ready for the answer of a plan or a what-if, whose question is all that
// was asked: the command, its settings and the configuration's text. A folder with the answer to
// another question is ErrTaken; with replace its files make way for the new ones. Finished runs
// stay in any case. A folder with an input, as CheckFolder has it, is refused.
func OpenAnswer(dir string, question []byte, replace bool, inputs ...string) error {
	if err := files.CheckFolder(dir, inputs...); err != nil {
		return err
	}
	path := filepath.Join(dir, QuestionFile)
	before, err := files.ReadResult(path)
	switch {
	case err == nil && bytes.Equal(before, question):
		return nil
	case err == nil && !replace:
		return fmt.Errorf("%s: holds the answer to another question (%s): %w", dir,
			QuestionFile, ErrTaken)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return WriteFile(path, question)
}
