package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// renames maps old names of commands and flags to the current names.
var renames = []struct{ old, now string }{
	{"figures --paper", "paper figures [NAME]"},
	{"figures", "report DIR --format png"},
	{"claims", "paper claims [NAME] --numbers KIND"},
	{"diff", "compare A B"},
	{"patterns search", "paper patterns"},
	{"patterns describe", "list patterns FILE"},
	{"patterns", "paper patterns, or list patterns FILE"},
	{"simulate --details", "report DIR --format text"},
	{"simulate --trace", "simulate --set output.trace=true"},
	{"simulate --record-selections", "simulate --record FILE"},
	{"plan --engine", "plan --job CLUSTER"},
	{"sweep --engine", "simulate --job CLUSTER"},
	{"sweep --details", "report DIR --format text"},
	{"sweep", "simulate FILE"},
	{"--library", "the variable SPARSESERVE_CUDA_LIB"},
	{"trace describe --block", "trace describe FILE.toml with system.block_tokens"},
	{"compare --all", "compare A B --json"},
	{"calibrate import aic", "calibrate import DIR"},
	{"calibrate --host", "calibrate host DIR"},
	{"calibrate --drive", "calibrate drive DIR"},
	{"calibrate --refit", "calibrate refit CSV"},
	{"calibrate --fresh", "calibrate --force"},
	{"calibrate --format", "report DIR --format svg, of the folder of the plots"},
	{"validate --live-only", "validate run FILE"},
	{"validate live", "validate run FILE"},
	{"validate --reuse-live", "validate reuse FILE"},
	{"validate --recompute", "validate reuse DIR"},
	{"validate --ablate", "validate ablate DIR"},
	{"validate --repeat", "validate reuse DIR, of each folder"},
	{"validate repeat", "validate reuse DIR, of each folder"},
	{"validate --markdown", "report DIR --format md"},
}

// renamed returns an error for a command line that uses an old name.
func renamed(args []string) error {
	for _, r := range renames {
		words := strings.Fields(r.old)
		commands := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w[0] == '-' })
		old := words[len(words)-1]
		given := func(arg string) bool { return arg == old || strings.HasPrefix(arg, old+"=") }
		if len(args) >= len(commands) && slices.Equal(args[:len(commands)], commands) &&
			(old[0] != '-' || slices.ContainsFunc(args, given)) {
			return fmt.Errorf("%s is now: %s", r.old, r.now)
		}
	}
	return nil
}

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
