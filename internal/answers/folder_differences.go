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
	for i := range stored {
		s := &stored[i]
		if !slices.ContainsFunc(all, func(o *apartRun) bool {
			return o.dir != s.dir && reflect.DeepEqual(o.Summary, s.Summary) &&
				reflect.DeepEqual(o.Settings, s.Settings)
		}) {
			all = append(all, &apartRun{storedRun: s, config: s.config()})
		}
	}
	keys := map[string][]string{} // that differ, by kind
	for _, group := range alike(all) {
		keys[group[0].kind()] = append(keys[group[0].kind()], keysApart(group)...)
	}
	for kind, own := range keys {
		slices.Sort(own)
		of := slices.DeleteFunc(slices.Clone(all), func(r *apartRun) bool { return r.kind() != kind })
		if own = slices.Compact(own); legible(of, own) {
			for _, r := range of {
				for _, key := range own {
					if v, ok := r.config[key]; ok {
						r.set(key, v)
					}
				}
			}
		}
	}
	apart := map[string]bool{} // kinds that their folders tell apart
	for _, group := range alike(all) {
		apart[group[0].kind()] = apart[group[0].kind()] || !sameButSeed(group)
	}
	names := folderNames(all)
	runs := map[string]int{} // by name
	for _, r := range all {
		runs[r.Name]++
	}
	kept := make([]storedRun, len(all))
	for i, r := range all {
		if apart[r.kind()] {
			r.set(folderKey, names[r.dir])
		}
		if runs[r.Name] > 1 {
			r.Name = names[r.dir] + "-" + r.Name
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

// kind names the curves that a run may be of: its panel and system.
func (r *apartRun) kind() string { return r.Model + "\x00" + r.GPU + "\x00" + r.System }

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

// alike groups the runs that only their seeds and folders tell apart, by what else runs have.
func alike(runs []*apartRun) (groups [][]*apartRun) {
	at := map[string]int{}
	for _, r := range runs {
		key := fmt.Sprint(r.kind(), " ", r.Rate, r.Concurrency)
		for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
			if name != "seed" {
				key += fmt.Sprintf("\x00%s=%v", name, r.Settings[name])
			}
		}
		g, ok := at[key]
		if !ok {
			g = len(groups)
			at[key], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], r)
	}
	return groups
}

// keysApart lists the keys that the configurations of runs of several folders have otherwise.
func keysApart(runs []*apartRun) (keys []string) {
	first := runs[0]
	for _, r := range runs[1:] {
		if first.config == nil || r.config == nil || r.dir == first.dir {
			continue
		}
		both := maps.Clone(first.config)
		maps.Copy(both, r.config)
		for key := range both {
			if !reflect.DeepEqual(first.config[key], r.config[key]) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// sameButSeed reports whether runs have one configuration but for the seed: what is known of theirs
// is the same, and no two folders have a seed in common.
func sameButSeed(runs []*apartRun) bool {
	in := map[uint64]string{}
	for _, r := range runs {
		if dir, ok := in[r.Seed]; ok && dir != r.dir {
			return false
		}
		in[r.Seed] = r.dir
	}
	return len(keysApart(runs)) == 0
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
