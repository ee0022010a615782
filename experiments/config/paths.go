package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/traces"
)

// pathKeys are the keys that may hold a path, each with its names that are none. [[systems]] have
// those of systems, too.
var pathKeys = []struct {
	key   string
	names []string
}{
	{"model", hw.ModelNames()},
	{"gpu", hw.CardNames()},
	{"workload.trace", []string{traces.BuiltIn, traces.Synthetic, traces.Sessions, files.Stdin}},
	{"system.engine", hw.EngineNames()},
	{"prefix_cache.drive", hw.DriveNames()},
	{"selection.recording", nil},
	{"prefill.pattern", pattern.NamedMixes()},
	{"plan.prices_file", nil},
}

// relocate makes the paths of a document whose file is in the folder dir relative to the working
// folder: a relative path is one from dir or, where that holds no such file, from the working
// folder.
func (d *document) relocate(dir string) {
	d.dir = dir
	if dir == "" || dir == "." {
		return
	}
	systems, _ := d.tables("systems", d.tree["systems"]) // if they are none, apply says so
	for _, p := range pathKeys {
		d.relocateIn(d.tree, p.key, p.names)
		for _, system := range systems {
			d.relocateIn(system, strings.TrimPrefix(p.key, "system."), p.names)
		}
	}
}

// relocateIn does so for a key of a table, or of the tables within it.
func (d *document) relocateIn(table map[string]any, key string, names []string) {
	if outer, inner, nested := strings.Cut(key, "."); nested {
		within, _ := table[outer].(map[string]any)
		d.relocateIn(within, inner, names)
		return
	}
	path, ok := table[key].(string)
	if !ok || path == "" || filepath.IsAbs(path) || slices.Contains(names, path) {
		return
	}
	if from := filepath.Join(d.dir, path); exists(from) {
		table[key] = from
	} else if !exists(path) {
		d.absent = append(d.absent, path)
	}
}

// Paths lists the files of a configuration and what it names that may be a file or a folder.
func (c *Config) Paths() []string {
	paths := append(slices.Clone(c.files), c.Model, c.GPU, c.Workload.Trace)
	for i := range c.Systems {
		s := &c.Systems[i]
		paths = append(paths, s.Engine, s.PrefixCache.Drive, s.Selection.Recording, s.Prefill.Pattern)
	}
	return paths
}

// Paths lists those of all variants, and the prices of a plan.
func (s *Sweep) Paths() []string {
	all := map[string]bool{}
	for _, v := range s.Variants {
		for _, path := range v.Config.Paths() {
			all[path] = true
		}
	}
	if s.Plan != nil {
		all[s.Plan.PricesFile] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkPaths refuses files that are in neither of the folders that they were looked for in.
func (l *loader) checkPaths() error {
	for _, k := range []struct{ key, path string }{
		{"model", l.cfg.Model}, {"gpu", l.cfg.GPU}, {"workload.trace", l.cfg.Workload.Trace}} {
		if err := l.neither(k.key, k.path, k.key == "workload.trace"); err != nil {
			return l.place(err)
		}
	}
	for i := range l.cfg.Systems {
		s := &l.cfg.Systems[i]
		for _, k := range []struct{ key, path string }{
			{"system.engine", s.Engine}, {"selection.recording", s.Selection.Recording},
			{"prefill.pattern", s.Prefill.Pattern}} {
			if err := l.neither(k.key, k.path, k.key == "selection.recording"); err != nil {
				return l.placeSystem(err, l.customNamed(s.Name))
			}
		}
	}
	return nil
}

// neither returns the error of a path that is no file, or nil. What may be a misspelt name is left
// to what knows the names.
func (l *loader) neither(key, path string, always bool) *KeyError {
	dir, absent := l.absent[path]
	if !absent || !always && (!hw.LooksLikePath(path) || key == "model" && hw.HubName(path)) {
		return nil
	}
	return &KeyError{Key: key, Value: quote(path),
		Reason: fmt.Sprintf("no such file, neither in %s nor in the working folder", dir)}
}

// addAbsent keeps where the missing files of a document were looked for.
func (l *loader) addAbsent(doc *document) {
	l.absent = maps.Clone(l.absent) // which clones share
	for _, path := range doc.absent {
		if l.absent == nil {
			l.absent = map[string]string{}
		}
		l.absent[path] = doc.dir
	}
}
