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

// Limits of a legend: mostDifferences keys, each with a value of at most longestDifference
// characters. Folders that differ in more keys are shown by name.
const (
	mostDifferences   = 4
	longestDifference = 40
)

// folderKey is the setting of runs that only their folders distinguish.
const folderKey = "folder"

// tellApart turns configuration differences between folders into settings of their runs, as if an
// axis of one sweep had set them. Only runs that differ by the seed alone are averaged. Runs
// without a difference in their configurations, or with too many, get the name of their folder. A
// run that is in two folders is kept once.
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

// apartRun is a run with the settings of its configuration, by key; nil if there is no
// configuration.
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

// legible reports whether a legend can show the runs' values of some keys: few, short, and
// distinct.
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

// keysApart lists the keys in which the configurations of runs differ, except axis keys.
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

// config returns the settings of a run's configuration, by key; nil if there is none. It excludes
// the seed and the outputs, because they change no averaged figure.
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

// flatten stores the leaves of a tree under their dotted keys, with numbers as in JSON.
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

// folderNames returns the last elements of the result folders' paths; the whole paths if the last
// elements are equal.
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
