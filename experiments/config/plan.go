package config

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/traces"
)

// Plan is the [plan] table of a sweep: the purchase options for the traffic of its [workload].
type Plan struct {
	// provider whose GPU prices hold, or the lowest, middle or highest price per card (list prices)
	Prices string `toml:"prices"`
	// file of prices in place of the built-in ones
	PricesFile string `toml:"prices_file"`
	// largest number of replicas of a candidate
	MaxReplicas int `toml:"max_replicas" unit:"servers" range:">= 1, <= 1000"`
	// extra load, relative to the expected load; a candidate must meet the service level with and
	// without it
	Headroom float64 `toml:"headroom" unit:"share" range:">= 0, <= 10"`
	// replicas that may be down: the others must meet the service level; all are paid for
	Spare int `toml:"spare" unit:"servers" range:">= 0, <= 999"`
}

// DefaultPlan returns the default [plan] table.
func DefaultPlan() Plan { return Plan{Prices: "mid", MaxReplicas: 64, Headroom: 0.2} }

// Unfit is a system that does not fit the GPU memory of a variant.
type Unfit struct {
	Settings []Setting
	System   string
	Reason   string
}

// check returns an error if the [plan] table is impossible, or nil.
func (p *Plan) check() *KeyError {
	err := checkTable(p, "plan")
	if err == nil && p.Spare >= p.MaxReplicas {
		err = &KeyError{Key: "plan.spare", Value: Show(p.Spare),
			Reason: "must be below plan.max_replicas = " + Show(p.MaxReplicas)}
	}
	return err
}

// checkPurchase refuses configurations for which no purchase can be planned.
func (l *loader) checkPurchase() error {
	c := &l.cfg
	w := &c.Workload
	const (
		one   = "a purchase is planned for one load; set one value"
		stays = "a plan has only replicas that stay up; leave it out"
	)
	switch {
	case w.HasRate() && l.origin("workload.rate") == builtInDefault:
		return fmt.Errorf("workload.rate: not set; [plan] buys for the traffic that is expected, as in " +
			"workload.rate = 10, workload.concurrency = 64, or a trace with times and workload.arrivals = " +
			"\"trace\"")
	case w.HasRate() && l.lists["workload.rate"].Len() > 1:
		return l.listError("workload.rate", one)
	case w.Arrivals == traces.ArrivalsClosed && l.lists["workload.concurrency"].Len() > 1:
		return l.listError("workload.concurrency", one)
	case l.chosen("fleet.replicas"):
		return l.listError("fleet.replicas",
			"[plan] looks for the number of replicas; leave it out, or set plan.max_replicas")
	case len(c.Fleet.Fail) > 0:
		return l.keyError("fleet.fail", rowsText(c.Fleet.Fail), stays)
	case len(c.Fleet.Drain) > 0:
		return l.keyError("fleet.drain", rowsText(c.Fleet.Drain), stays)
	}
	return l.place(contradiction(&c.SLO))
}

// listError returns an error about the values of a listed key.
func (l *loader) listError(key, reason string) error {
	return l.keyError(key, strings.ReplaceAll(fmt.Sprint(l.lists[key]), " ", ", "), reason)
}

// contradiction returns an error about two bounds of which one can never decide, because every
// request that meets the other meets it by far: a wider bound on a part than on the whole.
func contradiction(s *SLO) error {
	for _, pair := range [][2]string{{"delay", "ttft"}, {"delay", "e2e"}, {"ttft", "e2e"},
		{"tpot", "e2e"}} {
		limit, stat := s.bound(pair[0])
		most, of := s.bound(pair[1])
		if *most > 0 && *limit > *most && (stat == of || s.Rule == SLORequests) {
			key := "slo." + pair[1] + "_s"
			return &KeyError{Key: "slo." + pair[0] + "_s", Value: Show(*limit), With: []string{key},
				Reason: fmt.Sprintf("contradicts %s = %s: %s_s is a part of what that bounds", key, Show(*most),
					pair[0])}
		}
	}
	return nil
}
