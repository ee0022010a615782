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

// Paths lists the files of a sweep, its values that may be a file or a folder, and the price file
// of a plan.
func (s *Sweep) Paths() []string {
	all := map[string]bool{}
	for _, path := range s.files {
		all[path] = true
	}
	for _, p := range s.Runs() {
		for _, path := range p.Paths() {
			all[path] = true
		}
	}
	if s.Plan != nil {
		all[s.Plan.PricesFile] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Paths lists the values of a point that may be a file or a folder.
func (p *Point) Paths() (paths []string) {
	for key := range pathKeys {
		if v, ok := p.Field(key); ok {
			paths = append(paths, v.String())
		}
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
