package figures

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// abscissa is what pictures are drawn against.
type abscissa struct {
	key    string // of the setting; empty for the load
	label  string // with its unit
	name   string // of the only x, where it does not vary
	of     func(*Run) float64
	doubly bool // in powers of two
	varies bool
}

// abscissaOf picks the load, or where that does not vary the number that an axis of the
// experiment set to the most values.
func abscissaOf(runs []Run) abscissa {
	x := abscissa{label: loadLabel(runs), of: load}
	loads := valuesOf(runs, load)
	if len(loads) > 1 {
		x.varies = true
		return x
	}
	most := 1
	for _, key := range settingsOf(runs) {
		of := func(r *Run) float64 { return r.number(key) }
		if named(key) || slices.ContainsFunc(runs, func(r Run) bool { return math.IsNaN(of(&r)) }) {
			continue
		}
		if v := valuesOf(runs, of); len(v) > most {
			most = len(v)
			x = abscissa{key: key, label: settingLabel(key), of: of, varies: true, doubly: v[0] > 0 &&
				v[len(v)-1] >= 8*v[0]}
		}
	}
	if !x.varies && len(loads) == 1 {
		x.name = loadName(&runs[0])
	}
	return x
}

// loadName is the load of a run.
func loadName(r *Run) string {
	switch {
	case r.Concurrency == 1:
		return "1 client"
	case r.Concurrency > 0:
		return strconv.Itoa(r.Concurrency) + " clients"
	case r.Rate > 0 && r.ofSessions():
		return tickLabel(r.Rate) + " sessions/s"
	case r.Rate > 0:
		return tickLabel(r.Rate) + " req/s"
	}
	return "arrivals as recorded"
}

// valuesOf lists the values of a number, ascending.
func valuesOf(runs []Run, of func(*Run) float64) []float64 {
	var all []float64
	for i := range runs {
		all = append(all, of(&runs[i]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// settingsOf lists the keys that axes set, in alphabetical order.
func settingsOf(runs []Run) []string {
	var keys []string
	for i := range runs {
		for key := range runs[i].Settings {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// named says that panels, series or seeds show a key anyway.
func named(key string) bool {
	return slices.Contains([]string{"system.preset", "workload.rate", "workload.concurrency", "seed",
		"seeds", "model", "gpu"}, key)
}

// unitOf parts the words of a key from its unit.
func unitOf(key string) (words, unit string) {
	words = key[strings.LastIndexByte(key, '.')+1:]
	for _, u := range []struct{ suffix, unit string }{
		{"_tokens", "tokens"}, {"_blocks", "blocks"}, {"_gib", "GiB"}, {"_mib", "MiB"}, {"_ms", "ms"},
		{"_s", "s"},
	} {
		if w, ok := strings.CutSuffix(words, u.suffix); ok {
			words, unit = w, u.unit
			break
		}
	}
	all := strings.Split(words, "_")
	for i, w := range all {
		switch w {
		case "kv", "dram", "hbm", "ttft", "tbt":
			all[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(all, " "), unit
}

// settingLabel is a key as the label of an axis: "Budget (tokens)".
func settingLabel(key string) string {
	words, unit := unitOf(key)
	words = strings.ToUpper(words[:1]) + words[1:]
	if unit != "" {
		return words + " (" + unit + ")"
	}
	return words
}
