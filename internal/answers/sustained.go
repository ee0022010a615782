package answers

import (
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// mostSentences is the maximum number of axis settings with a sentence each.
const mostSentences = 3

// sustained reports, for each axis setting, the largest load that each system serves within the
// service level. It returns nothing for runs without a level, or with a single arrival process.
func (r *Runs) sustained(axes []string, rows []runRow) (sentences []string) {
	for first := 0; first < len(rows); {
		last := first
		for last < len(rows) && slices.Equal(rows[last].set, rows[first].set) {
			last++
		}
		if text := r.sentence(rows[first:last]); text != "" {
			var words []string
			for i, key := range axes {
				words = append(words, config.KeyName(key)+" "+rows[first].set[i])
			}
			if len(words) > 0 {
				text = strings.Join(words, ", ") + ": " + text
			}
			sentences = append(sentences, text)
		}
		first = last
	}
	if len(sentences) > mostSentences {
		return nil
	}
	return sentences
}

// sentence reports the largest load of each system, such as "sparseserve serves 0.25 req/s within
// the SLO; vllm less than 0.05".
func (r *Runs) sentence(rows []runRow) string {
	if slices.ContainsFunc(rows, func(x runRow) bool {
		return x.load.clients > 0 || x.load.rate == 0
	}) {
		return ""
	}
	systems := distinct(rows, func(x *runRow) string { return x.system })
	for i, system := range systems {
		most := largest(where(rows, func(x *runRow) bool { return x.system == system }))
		if most == "" {
			return ""
		}
		if i == 0 {
			most = "serves " + most + " " + r.Unit + " within the SLO"
		}
		systems[i] += " " + most
	}
	return strings.Join(systems, "; ") + "."
}

// largest returns the largest load of a system within the service level, below the first load that
// misses it; "" if the runs were not judged.
func largest(rows []runRow) string {
	held := ""
	for i := range rows {
		r := &rows[i]
		met, judged := r.met()
		switch {
		case judged == 0:
			return ""
		case met < len(r.runs) && held == "":
			return "less than " + r.load.String()
		case met < len(r.runs):
			return held
		}
		held = r.load.String()
	}
	return "at least " + held
}
