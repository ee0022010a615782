package answers

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// What a legend names at most: so many keys, each with its value in so many characters. Folders
// that differ in more are themselves named.
const (
	mostDifferences   = 4
	longestDifference = 40
)

// folderKey is the setting of runs that their folders alone tell apart.
const folderKey = "folder"

// tellApart makes what the configurations of several folders have otherwise a setting of their
// runs, as if an axis of one sweep had set it: only runs that differ by the seed alone are
// averaged. Runs whose configurations say nothing of it, or too much, have the name of their
// folder. A run that two folders have is kept once.
func tellApart(stored []storedRun) []storedRun {
	var all []*apartRun
	kinds, names := map[string][]*apartRun{}, map[string]int{}
	models, cards := map[string]bool{}, map[string]bool{}
	for i := range stored {
		s := &stored[i]
		if slices.ContainsFunc(all, func(o *apartRun) bool {
			return o.dir != s.dir && reflect.DeepEqual(o.Summary, s.Summary) &&
				reflect.DeepEqual(o.Settings, s.Settings)
		}) {
			continue
		}
		r := &apartRun{storedRun: s, config: s.config()}
		kind := fmt.Sprintf("%q %q %q", r.Model, r.GPU, r.System) // the curves that it may be of
		all, kinds[kind] = append(all, r), append(kinds[kind], r)
		models[r.Model], cards[r.GPU] = true, true
		names[r.Name]++
	}
	folders := folderNames(all)
	for _, runs := range kinds {
		keys := keysApart(runs)
		apart := !legible(runs, keys)
		for _, r := range runs {
			for _, key := range keys {
				if v, ok := r.config[key]; ok && !apart {
					r.set(key, v)
				}
			}
		}
		in := map[string]string{} // folders of runs, by all but the folder
		for _, r := range runs {
			key := fmt.Sprint(r.Rate, r.Concurrency, r.Seed, r.Settings)
			apart = apart || in[key] != "" && in[key] != r.dir
			in[key] = r.dir
		}
		for _, r := range runs {
			if apart {
				r.set(folderKey, folders[r.dir])
			}
		}
	}
	kept := make([]storedRun, len(all))
	for i, r := range all {
		if len(models) > 1 {
			r.set("model", r.Model)
		}
		if len(cards) > 1 {
			r.set("gpu", r.GPU)
		}
		if names[r.Name] > 1 {
			r.Name = folders[r.dir] + "-" + r.Name
		}
		kept[i] = *r.storedRun
	}
	return kept
}

// apartRun is a run with what its configuration sets, by key; nil where there is none.
type apartRun struct {
	*storedRun
	config map[string]any
}

// set makes a key a setting.
func (r *apartRun) set(key string, value any) {
	if r.Settings = maps.Clone(r.Settings); r.Settings == nil {
		r.Settings = map[string]any{}
	}
	r.Settings[key] = value
}

// legible reports whether a legend can name what runs have of some keys: few, short, and not one
// word for two values.
func legible(runs []*apartRun, keys []string) bool {
	if len(keys) > mostDifferences {
		return false
	}
	for _, key := range keys {
		values := map[string]any{}
		for _, r := range runs {
			v, ok := r.config[key]
			if !ok {
				continue
			}
			word := setting(key, v)
			if other, known := values[word]; len(word) > longestDifference ||
				known && !reflect.DeepEqual(other, v) {
				return false
			}
			values[word] = v
		}
	}
	return true
}

// keysApart lists the keys that the configurations of runs have otherwise, but for those of axes.
func keysApart(runs []*apartRun) (keys []string) {
	both := map[string]bool{}
	for _, r := range runs {
		for key := range r.config {
			both[key] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(both)), func(key string) bool {
		for _, r := range runs {
			if _, axis := r.Settings[key]; axis {
				return true
			}
		}
		return !slices.ContainsFunc(runs, func(r *apartRun) bool {
			return r.config != nil && !reflect.DeepEqual(r.config[key], runs[0].config[key])
		})
	})
}

// config is what the configuration of a run sets, by key; nil where there is none. The seed, and
// what a run writes, change no figure that it is averaged with.
func (s *storedRun) config() map[string]any {
	for _, folder := range []string{s.folder, s.dir} {
		var tree map[string]any
		path := filepath.Join(folder, run.ConfigFile)
		text, err := files.ReadResult(path)
		if folder == "" || err != nil || files.DecodeTOML(path, string(text), &tree) != nil {
			continue
		}
		systems, _ := tree["systems"].([]map[string]any)
		for _, system := range systems {
			if len(systems) > 1 && system["name"] != s.System {
				continue
			}
			tree["system"] = system
			for key, part := range system {
				if _, ok := part.(map[string]any); ok { // [systems.selection] has the keys of [selection]
					tree[key] = part
					delete(system, key)
				}
			}
		}
		delete(tree, "systems")
		flat := map[string]any{}
		flatten(flat, "", tree)
		maps.DeleteFunc(flat, func(key string, _ any) bool {
			return isNamed(key) || key == "system.name" || strings.HasPrefix(key, "output.")
		})
		return flat
	}
	return nil
}

// flatten puts the leaves of a tree under their dotted keys, and numbers as JSON has them.
func flatten(into map[string]any, prefix string, tree map[string]any) {
	for key, v := range tree {
		switch v := v.(type) {
		case map[string]any:
			flatten(into, prefix+key+".", v)
		case int64:
			into[prefix+key] = float64(v)
		default:
			into[prefix+key] = v
		}
	}
}

// folderNames are the last elements of the result folders' paths, or their paths where those are
// the same.
func folderNames(runs []*apartRun) map[string]string {
	names, of := map[string]string{}, map[string]string{}
	same := false
	for _, r := range runs {
		base := filepath.Base(r.dir)
		same = same || of[base] != "" && of[base] != r.dir
		names[r.dir], of[base] = base, r.dir
	}
	if same {
		for dir := range names {
			names[dir] = filepath.ToSlash(dir)
		}
	}
	return names
}
