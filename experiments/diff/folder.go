package diff

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Folder is the content of a result folder of simulate or sweep.
type Folder struct {
	Dir    string
	runs   []run.Row
	config map[string]string // key -> value; nil for a sweep

	version string // of the model; empty if unknown
}

// point is a point with its runs, one per seed.
type point struct {
	name string
	runs []*metrics.Summary
}

// Read reads a result folder.
func Read(dir string) (*Folder, error) {
	runs, err := run.ReadRows(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no %s, so this is no finished result folder of simulate",
			dir, run.SummaryFile)
	}
	if err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, runs: runs}
	var tree map[string]any
	path := filepath.Join(dir, run.ConfigFile)
	text, err := files.ReadResult(path)
	if err == nil {
		f.config = map[string]string{}
		if err := files.DecodeTOML(path, string(text), &tree); err != nil {
			return nil, err
		}
		Flatten("", tree, f.config)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	index, err := run.ReadIndex(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f.version = index.Version
	return f, nil
}

// Flatten stores the leaves of a configuration under dotted keys. The key of a table in an array is
// its name or its index.
func Flatten(prefix string, tree map[string]any, into map[string]string) {
	for key, value := range tree {
		switch v := value.(type) {
		case map[string]any:
			Flatten(prefix+key+".", v, into)
		case []map[string]any:
			for i, each := range v {
				name, ok := each["name"].(string)
				if !ok {
					name = strconv.Itoa(i)
				}
				Flatten(prefix+key+"."+name+".", each, into)
			}
		default:
			into[prefix+key] = fmt.Sprint(v)
		}
	}
}

// settings lists the configuration differences of two folders, by key: for systems that both have,
// or for the only system of each. Keys of other systems contain the system's name.
func settings(a, b *Folder) []Setting {
	list := []Setting{}
	if a.config == nil || b.config == nil {
		return list
	}
	inA, inB := systemsOf(a.config), systemsOf(b.config)
	ofA, ofB := a.config, b.config
	if len(inA) == 1 && len(inB) == 1 {
		ofA, ofB = underSystem(a.config, inA[0]), underSystem(b.config, inB[0])
	} else if !slices.Equal(inA, inB) {
		list = append(list, Setting{"systems", strings.Join(inA, ", "), strings.Join(inB, ", ")})
	}
	keys := maps.Clone(ofA)
	maps.Copy(keys, ofB)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if name, ok := systemOf(key, slices.Concat(inA, inB)); ok &&
			!(slices.Contains(inA, name) && slices.Contains(inB, name)) {
			continue // of a system that one folder lacks
		}
		if ofA[key] != ofB[key] {
			list = append(list, Setting{key, ofA[key], ofB[key]})
		}
	}
	return list
}

const systemsPrefix = "systems."

// systemsOf lists the names of a configuration's systems in alphabetical order.
func systemsOf(config map[string]string) (names []string) {
	for key, value := range config {
		if key == systemsPrefix+value+".name" {
			names = append(names, value)
		}
	}
	slices.Sort(names)
	return names
}

// systemOf returns the named system that a key belongs to.
func systemOf(key string, names []string) (name string, ok bool) {
	for _, n := range names {
		if strings.HasPrefix(key, systemsPrefix+n+".") && len(n) > len(name) {
			name, ok = n, true
		}
	}
	return name, ok
}

// underSystem returns the configuration with the keys of its only system under their whole names.
func underSystem(config map[string]string, name string) map[string]string {
	out := map[string]string{}
	for key, value := range config {
		if rest, ok := strings.CutPrefix(key, systemsPrefix+name+"."); ok {
			if key = rest; !strings.Contains(rest, ".") { // keys of its parts have their own tables
				key = "system." + rest
			}
		}
		out[key] = value
	}
	return out
}

// dimensions returns the values that distinguish the points of a folder, without seeds.
func dimensions(r *run.Row) map[string]string {
	d := map[string]string{
		"system": r.System, "model": r.Model, "gpu": r.GPU,
		"rate": strconv.FormatFloat(r.Rate, 'g', -1, 64),
	}
	if r.Concurrency > 0 {
		d["concurrency"] = strconv.Itoa(r.Concurrency)
	}
	if r.Replicas > 0 {
		d["replicas"] = strconv.Itoa(r.Replicas)
	}
	for key, value := range r.Settings {
		switch key {
		case "seed", "gpu", "model", "workload.rate", "workload.concurrency", "fleet.replicas",
			"system.preset":
		default:
			d[key] = fmt.Sprint(value)
		}
	}
	return d
}

// varying returns the dimensions that have several values in a folder.
func varying(folders ...*Folder) map[string]bool {
	varies := map[string]bool{}
	for _, f := range folders {
		seen := map[string]string{}
		for i := range f.runs {
			for key, value := range dimensions(&f.runs[i]) {
				if before, ok := seen[key]; ok && before != value {
					varies[key] = true
				}
				seen[key] = value
			}
		}
	}
	return varies
}

// points groups runs by the dimensions that vary.
func (f *Folder) points(varies map[string]bool) (points []point) {
	for i := range f.runs {
		r := &f.runs[i]
		d := dimensions(r)
		var parts []string
		for _, key := range []string{"system", "model", "gpu"} {
			if varies[key] {
				parts = append(parts, d[key])
			}
			delete(d, key)
		}
		for _, key := range slices.Sorted(maps.Keys(d)) {
			if varies[key] {
				parts = append(parts, key+"="+d[key])
			}
		}
		name := strings.Join(parts, " ")
		if name == "" {
			name = "all runs"
		}
		j := slices.IndexFunc(points, func(p point) bool { return p.name == name })
		if j < 0 {
			j = len(points)
			points = append(points, point{name: name})
		}
		points[j].runs = append(points[j].runs, &r.Summary)
	}
	return points
}
