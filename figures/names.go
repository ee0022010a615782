package figures

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// nameSeries names each run's series: by its system, and by what axes of the experiment
// set otherwise than in other runs. What all share is for the caption.
func nameSeries(runs []Run, x abscissa) {
	keys := slices.DeleteFunc(settingsOf(runs), func(key string) bool {
		return named(key) || key == x.key || !differs(runs, key)
	})
	var systems []string
	for i := range runs {
		systems = append(systems, runs[i].System)
	}
	one := len(unique(systems)) == 1
	for i := range runs {
		r := &runs[i]
		var words []string
		for _, key := range keys {
			if v, ok := r.Settings[key]; ok {
				words = append(words, setting(key, v))
			}
		}
		if r.in != "" {
			words = append(words, "folder "+r.in)
		}
		if !one || len(words) == 0 {
			words = slices.Insert(words, 0, label(r.System))
		}
		r.series = strings.Join(words, ", ")
	}
}

func differs(runs []Run, key string) bool {
	for i := range runs {
		if !reflect.DeepEqual(runs[i].Settings[key], runs[0].Settings[key]) {
			return true
		}
	}
	return false
}

// setting is a key and its value in words: "budget 512 tokens", "no batch control".
func setting(key string, value any) string {
	words, unit := unitOf(key)
	switch v := value.(type) {
	case bool:
		if v {
			return words
		}
		return "no " + words
	case float64:
		return strings.TrimSpace(words + " " + tickLabel(v) + " " + unit)
	case string:
		return words + " " + path.Base(v)
	}
	return words + " " + fmt.Sprint(value)
}

// gpuLabel is the usual name of a card.
func gpuLabel(gpu string) string {
	if strings.ContainsAny(gpu, "/.\\ ") {
		return path.Base(gpu)
	}
	return strings.ToUpper(gpu)
}

// digits prints a number as the tables have it.
func digits(v float64) string { return stats.Digits(v) }

// list joins names in prose, the middle of many left out.
func list(names []string) string {
	if n := len(names); n > 4 {
		return names[0] + " to " + names[n-1]
	}
	return strings.Join(names, ", ")
}
