package cli

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// load is what a run is put under: requests/s, or the clients of a closed loop.
type load struct {
	clients int
	rate    float64
}

func loadOf(s *sim.Summary) load { return load{s.Concurrency, s.Rate} }

func (l load) String() string {
	switch {
	case l.clients > 0:
		return "c=" + strconv.Itoa(l.clients)
	case l.rate == 0:
		return "trace" // arrivals as recorded
	}
	return strconv.FormatFloat(l.rate, 'g', -1, 64)
}

// row is one system at one load: the mean over seeds.
type row struct {
	system string
	load   load
	runs   int
	sum    sim.Summary
	runsOf []*sim.Summary
	met    int    // runs that kept the service level
	judged int    // runs of which that is known: all that did not end early
	queue  string // "unstable", "waits grow", or empty
}

// rowsOf gathers runs by load, ascending, then system in the order of the
// runs.
func rowsOf(sums []sim.Summary) []row {
	var rows []row
	for i := range sums {
		s := &sums[i]
		system := s.System
		if s.Replicas > 1 {
			system += " x" + strconv.Itoa(s.Replicas)
		}
		j := slices.IndexFunc(rows, func(r row) bool { return r.system == system && r.load == loadOf(s) })
		if j < 0 {
			j = len(rows)
			rows = append(rows, row{system: system, load: loadOf(s)})
		}
		rows[j].add(s)
	}
	for i := range rows {
		rows[i].divide()
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.load.clients, b.load.clients), cmp.Compare(a.load.rate, b.load.rate))
	})
	return rows
}

func (r *row) add(s *sim.Summary) {
	r.runs, r.runsOf = r.runs+1, append(r.runsOf, s)
	r.sum.Completed, r.sum.Rejected = r.sum.Completed+s.Completed, r.sum.Rejected+s.Rejected
	r.sum.Preempted += s.Preempted
	into, from := r.figures(), (&row{sum: *s}).figures()
	for i := range into {
		*into[i] += *from[i]
	}
	met, known := s.MetSLO()
	if known {
		r.judged++
	}
	if met {
		r.met++
	}
	switch {
	case warn.Has(s.Warnings, warn.UnstableQueue):
		r.queue = "unstable"
	case warn.Has(s.Warnings, warn.WaitsGrow) && r.queue == "":
		r.queue = "waits grow"
	}
}

func (r *row) divide() {
	for _, f := range r.figures() {
		*f /= float64(r.runs)
	}
}

// figures are the numbers that a table row shows.
func (r *row) figures() []*float64 {
	s := &r.sum
	return []*float64{&s.TTFT.Mean, &s.TTFT.P99, &s.TBT.Mean, &s.TBT.P99, &s.ThroughputTokS,
		&s.QueueDelay.Mean, &s.BatchMean, &s.BlocksLoadedPerStep, &s.HitRatio,
		&s.RecomputedShare}
}
