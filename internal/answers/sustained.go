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
// the SLO; vllm serves less than 0.05".
func (r *Runs) sentence(rows []runRow) string {
	var systems []string
	for i := range rows {
		if l := rows[i].load; l.clients > 0 || l.rate == 0 {
			return ""
		}
		if !slices.Contains(systems, rows[i].system) {
			systems = append(systems, rows[i].system)
		}
	}
	if one := rows[0].load; !slices.ContainsFunc(rows, func(r runRow) bool { return r.load != one }) {
		return r.atOneLoad(rows)
	}
	var loads []string
	by := map[string][]string{} // load -> systems
	for _, system := range systems {
		most := largest(rows, system)
		if most == "" {
			return ""
		}
		if by[most] == nil {
			loads = append(loads, most)
		}
		by[most] = append(by[most], system)
	}
	var words []string
	for i, most := range loads {
		verb := " serves "
		if len(by[most]) > 1 {
			verb = " each serve "
		}
		if i == 0 {
			most += " " + r.Unit + " within the SLO"
		}
		words = append(words, strings.Join(by[loads[i]], ", ")+verb+most)
	}
	return strings.Join(words, "; ") + "."
}

// atOneLoad reports which systems meet the service level at the only load.
func (r *Runs) atOneLoad(rows []runRow) string {
	var meets, misses []string
	for i := range rows {
		switch met, judged := rows[i].met(); {
		case judged == 0:
			return ""
		case met == len(rows[i].runs):
			meets = append(meets, rows[i].system)
		default:
			misses = append(misses, rows[i].system)
		}
	}
	text := "At " + rows[0].load.String() + " " + r.Unit
	for _, side := range []struct {
		one, several string
		systems      []string
	}{{" meets the SLO", " meet the SLO", meets}, {" misses the SLO", " miss the SLO", misses}} {
		verb := side.one
		if len(side.systems) > 1 {
			verb = side.several
		}
		if len(side.systems) > 0 {
			text += ", " + strings.Join(side.systems, ", ") + verb
		}
	}
	return text + "."
}

// largest returns the largest load that a system serves within the service level, below the first
// load that misses it; "" if the runs were not judged.
func largest(rows []runRow, system string) string {
	held := ""
	for i := range rows {
		r := &rows[i]
		if r.system != system {
			continue
		}
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
