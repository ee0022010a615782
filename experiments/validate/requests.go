package validate

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// servedRequest holds the times of a served request, in seconds of its run.
type servedRequest struct {
	arrival, first, last float64
	id                   int // from 1, in order of arrival
}

// readServed reads the served requests from a run's kept table of requests.
func readServed(dir string) (all []servedRequest, err error) {
	found, err := files.EachRow(requestsIn(dir), func(row *files.Row) {
		if row.Text("first_token_s") == "" {
			return // rejected
		}
		r := servedRequest{arrival: row.Number("arrival_s"), first: row.Number("first_token_s"),
			last: row.Number("last_token_s")}
		var fault error
		if r.id, fault = strconv.Atoi(row.Text("id")); fault != nil {
			row.Want("id", "an integer")
		}
		all = append(all, r)
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: not a table of requests", requestsIn(dir))
	}
	return all, err
}

// requestsIn returns the path of a run's table of requests, which is compressed for a live run.
func requestsIn(dir string) string {
	path := filepath.Join(dir, run.RequestsCSV)
	if files.HasResult(path) {
		return path
	}
	return path + ".gz"
}

// readSide reads a run's summary and its served requests. It checks the summary's mean TTFT and
// number of requests against the table, and takes the TTFT percentiles from the table: summaries of
// live runs older than package quantile use the nearest rank of a histogram.
func readSide(dir string, sum *metrics.Summary) (all []servedRequest, err error) {
	if *sum, err = run.ReadSummary(dir); err != nil {
		return nil, err
	}
	if all, err = readServed(dir); err != nil {
		return nil, err
	}
	total, n, path := 0.0, len(all), requestsIn(dir)
	var ttft []float64
	for _, r := range all {
		total += r.first - r.arrival
		ttft = append(ttft, r.first-r.arrival)
	}
	if n != sum.Completed {
		return nil, fmt.Errorf("%s: %d requests finished, the summary has %d", path, n, sum.Completed)
	}
	if n > 0 && math.Abs(total/float64(n)-sum.TTFT.Mean) > 1e-6*(1+sum.TTFT.Mean) {
		return nil, fmt.Errorf("%s: mean TTFT of %.9g s, the summary has %.9g s", path,
			total/float64(n), sum.TTFT.Mean)
	}
	if slices.Sort(ttft); n > 0 {
		t := &sum.TTFT
		for p, into := range map[float64]*float64{50: &t.P50, 90: &t.P90, 95: &t.P95, 99: &t.P99} {
			*into = stats.Of(ttft, p)
		}
	}
	return all, nil
}

// saturated reports whether requests arrive faster than a live run serves them: its queue keeps
// growing, requests wait longer than the service level allows, or more than half of all requests
// are unfinished when the last one arrives. The last rule covers short runs whose batch grows
// instead of the queue.
func saturated(s *metrics.Summary, all []servedRequest, slo *config.SLO) bool {
	if s.QueueDelay.Mean > slo.DelayS || s.QueueGrows() {
		return true
	}
	if len(all) == 0 {
		return false
	}
	last := slices.MaxFunc(all, func(a, b servedRequest) int {
		return cmp.Compare(a.arrival, b.arrival)
	}).arrival
	unfinished := 0
	for _, r := range all {
		if r.last > last {
			unfinished++
		}
	}
	return 2*unfinished > len(all)
}
