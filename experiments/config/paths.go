package config

import (
	"maps"
	"os"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
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
