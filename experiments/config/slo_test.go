package config

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

func TestSLO(t *testing.T) {
	mean := SLO{TBTFactor: 25, DelayS: 2, DelayStat: "mean"}
	median := SLO{TBTFactor: 25, DelayS: 2, DelayStat: "median"}
	absolute := SLO{TBTFactor: 25, TBTS: 0.1, DelayS: 2, DelayStat: "mean"}
	run := func(completed int, tbt, delayMean, delayP50 float64) *sim.Summary {
		return &sim.Summary{Completed: completed, TBT: sim.Stats{P99: tbt}, QueueDelay: sim.Stats{Mean: delayMean, P50: delayP50}}
	}
	for _, c := range []struct {
		name string
		slo  SLO
		run  *sim.Summary
		want bool
	}{
		{"at both limits", mean, run(1, 0.75, 2, 9), true},
		{"slow tokens", mean, run(1, 0.76, 2, 0), false},
		{"long mean delay", mean, run(1, 0.1, 2.1, 0), false},
		{"median ignores the mean", median, run(1, 0.1, 9, 2), true},
		{"long median delay", median, run(1, 0.1, 0, 2.1), false},
		{"absolute bound", absolute, run(1, 0.2, 0, 0), false},
		{"nothing finished", mean, run(0, 0, 0, 0), false},
	} {
		if got := c.slo.Met(c.run, 0.03); got != c.want {
			t.Errorf("%s: met is %v", c.name, got)
		}
	}
}
