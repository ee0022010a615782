package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// addPSA adds what PSA's Fig. 5 says, measured at the target of the accuracy
// proxy. PSA is as published: one budget for the heads of a layer.
func addPSA(all map[measureKey]measurement) {
	add := func(id string, f func(*results) (float64, error)) {
		all[measureKey{id, 0}] = measurement{from: []string{"psa-fig5"}, measure: f}
	}
	add("psa-fig5-lwm", kvRatio("lwm-7b", "vllm-sparse"))
	add("psa-fig5-llama", kvRatio("llama3.1-8b", "vllm-sparse"))
	add("psa-fig5-infinigen", kvRatio("lwm-7b", "infinigen"))
	add("psa-abs-full", func(r *results) (float64, error) {
		best := 0.0
		for _, model := range []string{"lwm-7b", "llama3.1-8b"} {
			shares, err := r.kvShares(model, "psa")
			if err != nil {
				return 0, err
			}
			for _, share := range shares {
				best = math.Max(best, 1/share)
			}
		}
		return best, nil
	})
}

// kvRatio is the KV that a system attends to over PSA's, mean over sets.
func kvRatio(model, system string) func(*results) (float64, error) {
	return func(r *results) (float64, error) {
		over, err := r.kvShares(model, system)
		if err != nil {
			return 0, err
		}
		under, err := r.kvShares(model, "psa")
		if err != nil {
			return 0, err
		}
		sum := 0.0
		for _, set := range slices.Sorted(maps.Keys(over)) {
			sum += over[set] / under[set]
		}
		return sum / float64(len(over)), nil
	}
}

// kvShares is the share of KV that a system attends to in each set, mean over
// seeds.
func (r *results) kvShares(model, system string) (map[string]float64, error) {
	rows, err := r.table("psa-fig5")
	if err != nil {
		return nil, err
	}
	sum, n := map[string]float64{}, map[string]float64{}
	for _, row := range rows {
		if row["model"] != model || row["system"] != system {
			continue
		}
		v, err := strconv.ParseFloat(row["kv_share"], 64)
		if err != nil {
			return nil, err
		}
		sum[row["dataset"]] += v
		n[row["dataset"]]++
	}
	if len(sum) == 0 {
		return nil, fmt.Errorf("psa-fig5: no row of %s with %s", system, model)
	}
	for set := range sum {
		sum[set] /= n[set]
	}
	return sum, nil
}
