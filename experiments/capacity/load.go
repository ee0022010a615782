package capacity

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// What a load counts.
const (
	loadRate    = "requests/s"
	loadClients = "clients"
	loadSpeed   = "times the trace's own speed"
	loadStages  = "times the rates of the stages"
)

// loadOf returns the load of a workload, of all replicas together.
func loadOf(w *traces.Spec) (load float64, unit string) {
	switch {
	case w.Arrivals == traces.ArrivalsTrace:
		return w.Speed, loadSpeed
	case w.Arrivals == traces.ArrivalsClosed:
		return float64(w.Concurrency), loadClients
	case len(w.Stages) > 0:
		return 1, loadStages
	}
	return w.Rate, loadRate
}

// withLoad is the point of so many replicas under a load, with at least so many requests where
// there is no end to them. It serves those of the configuration, or leastRequests for each replica
// where these are more: fewer say nothing about a replica's queue. Sessions are as many as turns
// need to come at their full rate.
func withLoad(p config.Point, replicas int, load float64, requests int) config.Point {
	w := &p.Workload
	switch _, unit := loadOf(w); unit {
	case loadSpeed:
		w.Speed = load
	case loadClients:
		w.Concurrency = clientsOf(load)
	case loadRate:
		w.Rate = load
	case loadStages:
		w.Stages = slices.Clone(w.Stages)
		for i, stage := range w.Stages {
			w.Stages[i] = []float64{stage[0], stage[1] * load}
		}
	}
	if endless(w) {
		w.Requests = max(w.Requests, replicas*min(w.Requests, leastRequests), requests)
		w.Requests = min(max(w.Requests, sessionRequests(w)), mostRequests)
	}
	p.Fleet.Replicas = replicas
	return p
}

// endless says whether a workload has as many requests as are asked for.
func endless(w *traces.Spec) bool { return w.Requests > 0 && !w.FromFile() }

// turnovers is how many times the requests in flight, or the sessions that are open, are replaced
// in a run, at least: a shorter one is mostly its beginning, when the server is empty, and its end.
const turnovers = 10

// steady is steadyAt what a run came to.
func steady(w *traces.Spec, sum *sim.Summary) int { return steadyAt(w, sum.E2E.Mean) }

// roundUp rounds up to two digits.
func roundUp(x float64) int {
	if x <= 0 {
		return 0
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-1))
	return int(math.Ceil(x/unit-1e-9) * unit)
}

// clientsOf is how many clients a load of a closed loop is.
func clientsOf(load float64) int { return max(1, int(math.Round(load))) }

// describeLoad is a load in words.
func describeLoad(w *traces.Spec) string {
	load, unit := loadOf(w)
	switch unit {
	case loadClients:
		return fmt.Sprintf("a closed loop of %d clients", clientsOf(load))
	case loadSpeed:
		return fmt.Sprintf("arrivals as recorded, %g times as fast", load)
	case loadStages:
		return fmt.Sprintf("stages of seconds and %s, %v", RateUnit(w), w.Stages)
	}
	return fmt.Sprintf("%g %s, %s", load, RateUnit(w), w.Arrivals)
}
