package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// misused adds to a parser error where to find help. For an unknown flag that is a configuration
// key it adds how to set the key.
func misused(err error) error {
	command := "sparseserve"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		command = parse.Context.Selected().FullPath()
	}
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag --")
	name, _, _ = strings.Cut(name, ",")
	if key, notKey := config.SettableKey(name); unknown && notKey == nil {
		return fmt.Errorf("unknown flag --%s, which is a key of the configuration: --set %s=VALUE", name,
			key)
	}
	return fmt.Errorf("%w; see %s --help", err, command)
}

// unwritten names the flag whose folder or file cannot be created, because the system's error often
// names a parent folder or a temporary file.
func unwritten(err error, flags []*kong.Flag) error {
	var at *fs.PathError
	if !errors.As(err, &at) || run.IsFull(err) || at.Op != "mkdir" &&
		!errors.Is(at.Err, syscall.ENOTDIR) &&
		!strings.HasPrefix(filepath.Base(at.Path), ".") { // a lock, or a file that is renamed
		return err
	}
	for _, f := range flags {
		path, _ := f.Target.Interface().(string)
		if (f.Name == "out" || f.Name == "points") && path != "" && (within(path, at.Path) != at.Path ||
			within(at.Path, path) != path || filepath.Dir(path) == filepath.Dir(at.Path)) {
			return fmt.Errorf("--%s %s: cannot be written: %w; give another", f.Name, path, at.Err)
		}
	}
	return err
}
