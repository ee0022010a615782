package figures

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/internal/files"
)

// What a legend names at most: so many keys, each with its value in so many characters. Folders
// that differ in more are themselves named.
const (
	mostDifferences   = 4
	longestDifference = 40
)

// configs reads configurations of runs, each once.
type configs map[string]map[string]any

func (c configs) of(r *Run) map[string]any {
	key := r.System + "\x00" + r.source + "\x00" + r.folder
	config, read := c[key]
	if !read {
		config = configOf(r)
		c[key] = config
	}
	return config
}

// tellApart makes what the configurations of several folders have otherwise a setting of their
// runs, as if an axis of one sweep had set it: only runs that differ by the seed alone are
// averaged. Runs whose configurations say nothing of it, or too much, have the name of their
// folder. A run that two folders have is kept once.
func tellApart(runs []Run) []Run {
	if len(sources(runs)) < 2 {
		return runs
	}
	runs = once(runs)
	read := configs{}
	keys := map[string][]string{} // that differ, by kind
	for _, group := range alike(runs) {
		kind := group[0].kind()
		keys[kind] = append(keys[kind], read.differing(group)...)
	}
	for kind, all := range keys {
		slices.Sort(all)
		of := slices.DeleteFunc(pointers(runs), func(r *Run) bool { return r.kind() != kind })
		if all = slices.Compact(all); read.legible(of, all) {
			for _, r := range of {
				r.set(all, read.of(r))
			}
		}
	}
	apart := map[string]bool{} // kinds that their folders tell apart
	for _, group := range alike(runs) {
		apart[group[0].kind()] = apart[group[0].kind()] || !read.sameButSeed(group)
	}
	names := folderNames(runs)
	for i := range runs {
		if r := &runs[i]; apart[r.kind()] {
			r.in = names[r.source]
		}
	}
	return runs
}

// set makes some keys of a configuration settings of a run.
func (r *Run) set(keys []string, config map[string]any) {
	if r.Settings = maps.Clone(r.Settings); r.Settings == nil {
		r.Settings = map[string]any{}
	}
	for _, key := range keys {
		if v, ok := config[key]; ok {
			r.Settings[key] = v
		}
	}
}

// legible says whether a legend can name what runs have of some keys: few, short, and not one word
// for two values.
func (c configs) legible(runs []*Run, keys []string) bool {
	if len(keys) > mostDifferences {
		return false
	}
	for _, key := range keys {
		values := map[string]any{}
		for _, r := range runs {
			v, ok := c.of(r)[key]
			if !ok {
				continue
			}
			word := setting(key, v)
			if other, ok := values[word]; len(word) > longestDifference ||
				ok && !reflect.DeepEqual(other, v) {
				return false
			}
			values[word] = v
		}
	}
	return true
}

// once leaves out runs that an earlier folder has, the same in all.
func once(runs []Run) []Run {
	var kept []Run
	for i := range runs {
		if !slices.ContainsFunc(kept, func(r Run) bool {
			other := r.source != runs[i].source
			r.source, r.folder = runs[i].source, runs[i].folder
			return other && reflect.DeepEqual(r, runs[i])
		}) {
			kept = append(kept, runs[i])
		}
	}
	return kept
}

// kind names the curves that a run may be of: its panel and system.
func (r *Run) kind() string { return r.Model + "\x00" + r.GPU + "\x00" + r.System }

// alike groups the runs that only their seeds and folders tell apart, by what else runs have.
func alike(runs []Run) [][]*Run {
	var groups [][]*Run
	at := map[string]int{}
	for _, r := range pointers(runs) {
		key := fmt.Sprint(r.kind(), " ", r.Rate, r.Concurrency)
		for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
			if name != "seed" && name != "seeds" {
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

func pointers(runs []Run) []*Run {
	all := make([]*Run, len(runs))
	for i := range runs {
		all[i] = &runs[i]
	}
	return all
}

// sources are the result folders of runs.
func sources(runs []Run) []string {
	var all []string
	for i := range runs {
		all = append(all, runs[i].source)
	}
	return unique(all)
}

// differing lists the keys that the configurations of runs of several folders have otherwise.
func (c configs) differing(runs []*Run) []string {
	var keys []string
	first := c.of(runs[0])
	for _, r := range runs[1:] {
		config := c.of(r)
		if first == nil || config == nil || r.source == runs[0].source {
			continue
		}
		for key := range first {
			if _, ok := config[key]; !ok {
				keys = append(keys, key)
			}
		}
		for key, v := range config {
			if !reflect.DeepEqual(v, first[key]) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// sameButSeed says whether runs have one configuration but for the seed: what is known of theirs is
// the same, and no two folders have a seed in common.
func (c configs) sameButSeed(runs []*Run) bool {
	in := map[uint64]string{}
	for _, r := range runs {
		if source, ok := in[r.Seed]; ok && source != r.source {
			return false
		}
		in[r.Seed] = r.source
	}
	return len(c.differing(runs)) == 0
}

// configOf is what the configuration of a run sets, by key; nil where there is none. The seed, and
// what a run writes, change no figure that it is averaged with.
func configOf(r *Run) map[string]any {
	for _, folder := range []string{r.folder, r.source} {
		var tree map[string]any
		text, err := files.ReadResult(filepath.Join(folder, "config.toml"))
		if folder == "" || err != nil {
			continue
		}
		if _, err := toml.Decode(string(text), &tree); err != nil {
			continue
		}
		if systems, ok := tree["systems"].([]map[string]any); ok {
			for _, s := range systems {
				if len(systems) == 1 || s["name"] == r.System {
					tree["system"] = s
				}
			}
			delete(tree, "systems")
		}
		flat := map[string]any{}
		flatten(flat, "", tree)
		maps.DeleteFunc(flat, func(key string, _ any) bool {
			return named(key) || key == "system.name" || strings.HasPrefix(key, "output.")
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
func folderNames(runs []Run) map[string]string {
	all, names := sources(runs), map[string]string{}
	var bases []string
	for _, source := range all {
		names[source] = filepath.Base(source)
		bases = append(bases, names[source])
	}
	if len(unique(bases)) < len(all) {
		for _, source := range all {
			names[source] = filepath.ToSlash(source)
		}
	}
	return names
}
