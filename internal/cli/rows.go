package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// row is one system at one rate: the mean over seeds.
type row struct {
	system   string
	rate     float64
	runs     int
	sum      sim.Summary
	met      int // runs that kept the service level
	unstable bool
}

// rowsOf gathers runs by rate, ascending, then system in the order of the
// runs.
func rowsOf(sums []sim.Summary) []row {
	var rows []row
	for i := range sums {
		s := &sums[i]
		j := slices.IndexFunc(rows, func(r row) bool { return r.system == s.System && r.rate == s.Rate })
		if j < 0 {
			j = len(rows)
			rows = append(rows, row{system: s.System, rate: s.Rate})
		}
		rows[j].add(s)
	}
	for i := range rows {
		rows[i].divide()
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.rate, b.rate) })
	return rows
}

func (r *row) add(s *sim.Summary) {
	r.runs++
	r.sum.Completed, r.sum.Rejected = r.sum.Completed+s.Completed, r.sum.Rejected+s.Rejected
	into, from := r.figures(), (&row{sum: *s}).figures()
	for i := range into {
		*into[i] += *from[i]
	}
	if s.SLOMet {
		r.met++
	}
	r.unstable = r.unstable || slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "unstable") })
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
		&s.QueueDelay.Mean, &s.BatchMean, &s.BlocksLoadedPerStep, &s.HitRatio}
}
