package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// eviction is the share of selected blocks that is missing under each eviction
// policy and under Belady's optimum, against the size of the pools. A size that
// is too small for some seed has no point. Intervals are left out: seeds differ
// in what is asked of the cache, by the same for all policies.
func eviction(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	pools := []string{"unified", "per-layer"}
	pic := picture{charts: []chart{{title: "(a) One pool"}, {title: "(b) One pool a layer"}}}
	seeds := map[string]bool{}
	misses := make([]map[string]map[float64][]float64, len(pools)) // by policy and size
	var order []string
	for row := range t.rows {
		seed, pool, policy := t.text(row, "seed"), t.text(row, "pool"), t.text(row, "eviction")
		size, hits := t.number(row, "kv_gib"), t.number(row, "hit_ratio")
		if t.err != nil {
			return picture{}, t.err
		}
		i := slices.Index(pools, pool)
		if i < 0 {
			return picture{}, fmt.Errorf("%s: row %d: no pool %q", t.path, row+1, pool)
		}
		seeds[seed] = true
		if misses[i] == nil {
			misses[i] = map[string]map[float64][]float64{}
		}
		if misses[i][policy] == nil {
			misses[i][policy] = map[float64][]float64{}
		}
		if !slices.Contains(order, policy) {
			order = append(order, policy)
		}
		misses[i][policy][size] = append(misses[i][policy][size], 100*(1-hits))
	}
	var all []curve
	for i := range pic.charts {
		c := &pic.charts[i]
		for _, policy := range order {
			line := curve{series: policyLabel(policy)}
			for size, values := range misses[i][policy] {
				if len(values) < len(seeds) {
					continue
				}
				p := summarise(size, values, false)
				p.low, p.high = p.mean, p.mean
				line.points = append(line.points, p)
			}
			slices.SortFunc(line.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
			c.curves = append(c.curves, line)
		}
		all = append(all, c.curves...)
	}
	for i := range pic.charts {
		c := &pic.charts[i]
		c.x, c.y, c.most = "HBM for KV blocks (GiB)", "Selected blocks missing (%)", 100
		c.axis = logarithmic(all)
	}
	return pic, nil
}

// policyLabel is what the legend calls an eviction policy.
func policyLabel(name string) string {
	switch name {
	case "score":
		return "Score (ArkVale)"
	case "belady":
		return "Belady's optimum"
	}
	return strings.ToUpper(name)
}
