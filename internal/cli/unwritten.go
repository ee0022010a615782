package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// unwritten names the flag whose folder or file an error says cannot be made: what the system says
// names a parent folder or a temporary file as often.
func unwritten(err error, flags []*field) error {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err
	}
	made := at.Op == "mkdir" || errors.Is(at.Err, syscall.ENOTDIR) ||
		at.Op == "open" && strings.HasPrefix(filepath.Base(at.Path), ".") // to be renamed, or a lock
	for _, f := range flags {
		if f.name != "out" && f.name != "points" || !made {
			continue
		}
		path, what := f.value.String(), "make the folder"
		folder := path
		if f.tag.Get("placeholder") == "FILE" {
			what, folder = "write the file", filepath.Dir(path)
		}
		if path == "" || !holds(folder, at.Path) && !holds(at.Path, folder) {
			continue
		}
		said := fmt.Sprintf("--%s %s: cannot %s: %v; give another", f.name, path, what, at.Err)
		text := strings.Replace(err.Error(), at.Error(), said, 1)
		return &flagged{strings.TrimPrefix(text, path+": "), err}
	}
	return err
}

// flagged is an error in other words.
type flagged struct {
	text string
	err  error
}

func (e *flagged) Error() string { return e.text }
func (e *flagged) Unwrap() error { return e.err }

// holds says whether a path is a folder's or within it, as far as their names say.
func holds(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
