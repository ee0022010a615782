package validate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mat"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// PrefixAuto is Replay.PrefixHit of a record that does not say how much of its prompts came
// from a prefix cache: full prefills are assumed, or whole prompts from the cache, whichever
// delays decodes as the record's were.
const PrefixAuto = -1

// PrefixEstimate is what a record says of prefix hits: seconds by which the prefill of one
// prompt prolonged every decode that ran meanwhile.
type PrefixEstimate struct {
	Measured, Full, Cached float64 // in the record, and simulated with full prefills and with none
	Hit                    bool    // the record is simulated with none
}

// minimum of requests to judge by: the delay is the third coefficient of a regression.
const estimateRequests = 300

// choosePrefix simulates the record with full prefills and, where that delays decodes by
// clearly more than they were delayed, with prompts from the prefix cache too; it keeps the
// simulation whose delay is nearer.
func (r *Replay) choosePrefix(ctx context.Context, out *ReplayReport) (served []servedRequest,
	err error) {
	if served, err = r.simulate(ctx, out); err != nil || len(r.Record.Requests) < estimateRequests {
		return served, err
	}
	measured := make([]decoded, len(r.Record.Requests))
	for i, m := range r.Record.Requests {
		at := m.At.Seconds()
		measured[i] = decoded{at + m.TTFT, at + m.E2E, m.Output}
	}
	var v PrefixEstimate
	var known [2]bool
	v.Measured, known[0] = prefillDelay(measured)
	v.Full, known[1] = prefillDelay(r.decodedOf(served))
	if !known[0] || !known[1] || v.Full <= 0 || v.Measured > v.Full/2 || !r.mayHit(out.Config) {
		return served, nil
	}
	other := *out
	config := *out.Config
	config.Workload.PrefixHit = 1
	other.Config = &config
	cached, err := r.simulate(ctx, &other)
	if err != nil {
		return nil, err
	}
	if v.Cached, known[0] = prefillDelay(r.decodedOf(cached)); !known[0] {
		return served, nil
	}
	v.Hit = math.Abs(v.Measured-v.Cached) < math.Abs(v.Measured-v.Full)
	if v.Hit {
		*out, served = other, cached
	}
	out.Prefix = &v
	return served, nil
}

// mayHit says whether the configured system is simulated with prefix hits.
func (r *Replay) mayHit(c *config.Config) bool {
	s := &c.Systems[0]
	return !s.Offload && (s.Prefill == "plain" || s.Prefill == "chunked")
}

// decoded is the part of a request's life in which it decodes.
type decoded struct {
	first, last float64 // seconds
	output      int     // tokens
}

func (r *Replay) decodedOf(served []servedRequest) []decoded {
	all := make([]decoded, 0, len(served))
	for _, s := range served {
		all = append(all, decoded{s.first, s.last, r.Record.Requests[s.id-1].Output})
	}
	return all
}

// prefillDelay estimates, by least squares over requests,
//
//	last - first = steps (base + each batch) + prompts delay
//
// where steps are the request's tokens but the first, batch is the mean number of requests that
// decoded meanwhile and prompts is how many others were given their first token. It is false
// where the requests do not determine the coefficients.
func prefillDelay(all []decoded) (delay float64, ok bool) {
	firsts := make([]float64, len(all))
	for i, r := range all {
		firsts[i] = r.first
	}
	slices.Sort(firsts)
	busy := newOccupancy(all)
	var rows, times []float64
	for _, r := range all {
		if r.output < 2 || r.last <= r.first {
			continue
		}
		steps := float64(r.output - 1)
		batch := (busy.until(r.last) - busy.until(r.first)) / (r.last - r.first)
		prompts := sort.SearchFloat64s(firsts, r.last) - sort.Search(len(firsts),
			func(i int) bool { return firsts[i] > r.first })
		rows = append(rows, steps, steps*batch, float64(prompts))
		times = append(times, r.last-r.first)
	}
	if len(times) < estimateRequests {
		return 0, false
	}
	var qr mat.QR
	qr.Factorize(mat.NewDense(len(times), 3, rows))
	if qr.Cond() > 1e6 {
		return 0, false
	}
	var x mat.VecDense
	if err := qr.SolveVecTo(&x, false, mat.NewVecDense(len(times), times)); err != nil {
		return 0, false
	}
	return x.AtVec(2), true
}

// occupancy is how many requests decode over time, summed up.
type occupancy struct {
	at    []float64 // seconds, rising
	count []float64 // requests from at[i] on
	sum   []float64 // request-seconds until at[i]
}

func newOccupancy(all []decoded) *occupancy {
	type change struct{ at, by float64 }
	var changes []change
	for _, r := range all {
		changes = append(changes, change{r.first, 1}, change{r.last, -1})
	}
	slices.SortFunc(changes, func(a, b change) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	o := &occupancy{}
	count, sum := 0.0, 0.0
	for i, c := range changes {
		if i > 0 {
			sum += count * (c.at - changes[i-1].at)
		}
		count += c.by
		o.at, o.count, o.sum = append(o.at, c.at), append(o.count, count), append(o.sum, sum)
	}
	return o
}

// until returns the request-seconds until a time not before the first change.
func (o *occupancy) until(at float64) float64 {
	i := sort.Search(len(o.at), func(i int) bool { return o.at[i] > at }) - 1
	if i < 0 {
		return 0
	}
	return o.sum[i] + o.count[i]*(at-o.at[i])
}

// String says in a sentence what was found and how to choose otherwise.
func (v *PrefixEstimate) String() string {
	found := fmt.Sprintf("each prompt delayed the others' decodes by %.2g ms; a simulated full "+
		"prefill by %.2g ms, one from the prefix cache by %.2g ms",
		1e3*v.Measured, 1e3*v.Full, 1e3*v.Cached)
	if v.Hit {
		return found + ": prompts are simulated as prefix cache hits (--prefix-hit 0 for full prefills)"
	}
	return found + ": prompts are simulated as full prefills (--prefix-hit SHARE for hits)"
}
