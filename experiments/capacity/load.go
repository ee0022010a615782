package capacity

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/traces"
)

// Units of loads.
const (
	loadRate    = "requests/s"
	loadClients = "clients"
	loadSpeed   = "times the trace's own speed"
	loadStages  = "times the rates of the stages"
)

// loadOf returns the load of a workload over all replicas.
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

// withLoad returns the point with n replicas under a load. For an endless workload it sets the
// number of requests: at least `requests`, the configured number, and leastRequests per replica,
// because a shorter run does not show the replica's queue. It adds requests so that sessions reach
// their full rate of turns.
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

// endless reports whether a workload can supply any number of requests.
func endless(w *traces.Spec) bool { return w.Requests > 0 && !w.FromFile() }

// turnovers is the minimum number of times that a run replaces the requests in flight, or the open
// sessions. A shorter run consists mostly of warm-up and drain.
const turnovers = 10

// roundUp rounds up to two digits.
func roundUp(x float64) int {
	if x <= 0 {
		return 0
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-1))
	return int(math.Ceil(x/unit-1e-9) * unit)
}

// clientsOf returns the number of clients of a closed-loop load.
func clientsOf(load float64) int { return max(1, int(math.Round(load))) }

// describeLoad returns a load in words.
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
