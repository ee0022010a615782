package config

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/traces"
)

// pathKeys are the keys that may hold a path, each with its values that are names instead.
var pathKeys = map[string][]string{
	"model":               llm.Names(),
	"gpu":                 hw.CardNames(),
	"workload.trace":      {traces.BuiltIn, traces.Synthetic, traces.Sessions, files.Stdin},
	"system.engine":       hw.EngineNames(),
	"prefix_cache.drive":  hw.DriveNames(),
	"selection.recording": nil,
	"prefill.pattern":     pattern.NamedMixes(),
	"plan.prices_file":    nil,
}

// Paths lists the files of a configuration, and its values that may be a file or a folder.
func (c *Config) Paths() []string {
	paths := append(slices.Clone(c.files), c.Model, c.GPU, c.Workload.Trace)
	for i := range c.Systems {
		s := &c.Systems[i]
		paths = append(paths, s.Engine, s.PrefixCache.Drive, s.Selection.Recording, s.Prefill.Pattern)
	}
	return paths
}

// Paths lists the paths of all variants, and the price file of a plan.
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

// checkPaths refuses files that exist in none of the folders searched.
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

// neither returns an error if a path is not a file, or nil. Possibly misspelt names are left to the
// code that knows the names.
func (l *loader) neither(key, path string, always bool) *KeyError {
	dir, absent := l.absent[path]
	if !absent || !always && (!builtin.LooksLikePath(path) || key == "model" && llm.HubName(path)) {
		return nil
	}
	return &KeyError{Key: key, Value: quote(path),
		Reason: fmt.Sprintf("no such file, neither in %s nor in the working folder", dir)}
}

// addAbsent records where the missing files of a document were searched.
func (l *loader) addAbsent(doc *document) {
	l.absent = maps.Clone(l.absent) // which clones share
	for _, path := range doc.absent {
		if l.absent == nil {
			l.absent = map[string]string{}
		}
		l.absent[path] = doc.dir
	}
}
