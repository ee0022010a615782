package config

import "github.com/sparseserve/sparseserve/sim"

// SLO is the service level that a run is held to: SparseServe §4.2, after
// Sarathi-Serve.
type SLO struct {
	// bound on P99 TBT, in decode iterations of the model on the card
	TBTFactor float64 `toml:"tbt_factor" unit:"iterations" range:"> 0"`
	// bound on P99 TBT; 0 = by the factor
	TBTS float64 `toml:"tbt_s" unit:"s" range:">= 0"`
	// bound on the scheduling delay
	DelayS float64 `toml:"delay_s" unit:"s" range:"> 0"`
	// which scheduling delay that bounds
	DelayStat string `toml:"delay_stat"`
}

// delayStats are the values of slo.delay_stat.
var delayStats = []string{"mean", "median"}

// TBTLimitS returns the bound on P99 TBT, given the time of one decode
// iteration of the model on the card, both in seconds.
func (s SLO) TBTLimitS(decodeIterationS float64) float64 {
	if s.TBTS > 0 {
		return s.TBTS
	}
	return s.TBTFactor * decodeIterationS
}

// Met says whether a run kept the service level. A run that finished nothing
// did not.
func (s SLO) Met(sum *sim.Summary, decodeIterationS float64) bool {
	return sum.Completed > 0 && sum.TBT.P99 <= s.TBTLimitS(decodeIterationS) && s.Delay(sum) <= s.DelayS
}

// Delay returns the scheduling delay of a run that DelayS bounds, in seconds.
func (s SLO) Delay(sum *sim.Summary) float64 {
	if s.DelayStat == "median" {
		return sum.QueueDelay.P50
	}
	return sum.QueueDelay.Mean
}
