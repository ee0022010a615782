package figures

import "strings"

// psaFig6 is the capacity of each system on each set, for one model under the
// strict and the relaxed service level.
func psaFig6(folders []string) (picture, error) {
	pic := picture{wide: 1.4}
	for _, folder := range folders {
		i := 0 // a and c are strict, b and d relaxed
		if strings.HasSuffix(folder, "b") || strings.HasSuffix(folder, "d") {
			i = 1
		}
		plan, err := readPlan(folder)
		if err != nil {
			return picture{}, err
		}
		slo := []string{"strict SLO", "relaxed SLO"}[i]
		c := chart{title: "(" + string(rune('a'+i)) + ") " + modelLabel(plan[0].Model) + ", " + slo,
			y: "Capacity (QPS)"}
		for _, set := range setsOf(plan) {
			g := group{label: shortSet(set)}
			for _, p := range plan {
				if p.set() != set {
					continue
				}
				g.bars = append(g.bars,
					bar{series: label(p.System), parts: []part{{label(p.System), p.capacity()}}})
			}
			c.groups = append(c.groups, g)
		}
		c.axis = linear(barSpan(c.groups))
		pic.charts = append(pic.charts, c)
	}
	all := looks()
	pic.looks = map[string]look{label("vllm"): all[0], label("vllm-sparse"): all[1],
		label("vllm-psa"): all[3]}
	return pic, nil
}

// set is the LongBench set that a candidate serves.
func (c *candidate) set() string {
	if sets, ok := c.Axes["workload.datasets"].([]any); ok && len(sets) == 1 {
		name, _ := sets[0].(string)
		return name
	}
	return ""
}

func (c *candidate) capacity() point {
	q := point{runs: len(c.Seeds), mean: c.Goodput, low: c.Goodput, high: c.Goodput}
	if c.Low != nil && c.High != nil {
		q.low, q.high = *c.Low, *c.High
	}
	return q
}

// setsOf lists the sets of a plan in its order.
func setsOf(plan []candidate) []string {
	var sets []string
	seen := map[string]bool{}
	for i := range plan {
		if s := plan[i].set(); !seen[s] {
			seen[s] = true
			sets = append(sets, s)
		}
	}
	return sets
}

// shortSet is a set's name as narrow as under a group of bars.
func shortSet(set string) string {
	if name, ok := map[string]string{
		"hotpotqa": "Hotpot", "2wikimqa": "2Wiki", "multifieldqa_en": "MField", "qasper": "Qasper",
		"gov_report": "GovRep", "qmsum": "QMSum", "multi_news": "MNews", "samsum": "SAMSum",
	}[set]; ok {
		return name
	}
	return strings.TrimSuffix(set, "_en")
}
