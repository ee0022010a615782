package answers

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// tellApart makes the folder a setting of the runs of a system that its folders configure
// differently, as if an axis of one sweep had set it. Only runs that differ by the seed alone are
// averaged. A run that is in two folders is kept once. Several models and cards are settings too.
func tellApart(stored []storedRun) (kept []storedRun) {
	models, cards, names := map[string]bool{}, map[string]bool{}, map[string]int{}
	configs, folders := map[string]string{}, map[string]string{} // by system, by run
	apart := map[string]bool{}                                   // systems
	differs := func(of map[string]string, key, value string) bool {
		first, known := of[key]
		of[key] = value
		return known && first != value
	}
	for i := range stored {
		s := &stored[i]
		if slices.ContainsFunc(kept, func(o storedRun) bool {
			return o.dir != s.dir && reflect.DeepEqual(o.Summary, s.Summary) &&
				reflect.DeepEqual(o.Settings, s.Settings)
		}) {
			continue
		}
		kept = append(kept, *s)
		models[s.Model], cards[s.GPU] = true, true
		names[s.Name]++
		system := s.kind()
		place := fmt.Sprint(system, s.Rate, s.Concurrency, s.Seed, s.Settings)
		if differs(configs, system, s.config()) || differs(folders, place, s.dir) {
			apart[system] = true
		}
	}
	for i := range kept {
		s := &kept[i]
		s.Settings = maps.Clone(s.Settings)
		if s.Settings == nil {
			s.Settings = map[string]any{}
		}
		folder := filepath.ToSlash(s.dir)
		if apart[s.kind()] {
			s.Settings["folder"] = folder
		}
		if len(models) > 1 {
			s.Settings["model"] = s.Model
		}
		if len(cards) > 1 {
			s.Settings["gpu"] = s.GPU
		}
		if names[s.Name] > 1 {
			s.Name = folder + "-" + s.Name
		}
	}
	return kept
}

// kind identifies the system, model and card of a run.
func (s *storedRun) kind() string { return fmt.Sprintf("%q %q %q", s.Model, s.GPU, s.System) }

// config returns the settings of a run's configuration as text; "" if there is none. It excludes
// the load, the seed, the keys of axes, and the outputs, which change no averaged figure.
func (s *storedRun) config() string {
	for _, folder := range []string{s.folder, s.dir} {
		var tree map[string]any
		path := filepath.Join(folder, run.ConfigFile)
		text, err := files.ReadResult(path)
		if folder == "" || err != nil || files.DecodeTOML(path, string(text), &tree) != nil {
			continue
		}
		delete(tree, "output")
		flat := map[string]string{}
		diff.Flatten("", tree, flat)
		maps.DeleteFunc(flat, func(key, _ string) bool {
			of, isSystems := strings.CutPrefix(key, "systems.")
			own, isOwn := strings.CutPrefix(of, s.System+".")
			_, axis := s.Settings[own]
			_, systemAxis := s.Settings["system."+own]
			return isSystems && !isOwn || axis || isOwn && systemAxis || isLoad(own)
		})
		return fmt.Sprint(flat)
	}
	return ""
}

// isLoad reports whether a key sets the load, the seed or the systems of runs.
func isLoad(key string) bool {
	return slices.Contains([]string{"system.preset", "workload.rate", "workload.concurrency", "seed",
		"fleet.replicas"}, key)
}
