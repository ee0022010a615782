package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// Sustained is the largest tried request rate that a system keeps up with, or its throughput if it
// keeps up with none.
type Sustained struct {
	System string  // with its replicas, where there are several
	Rate   float64 // requests/s; 0: it answered none
	alone  float64 // requests/s of one client for each replica, who sends one at a time
}

const (
	aloneRequests = 16   // a replica, that show how long a request takes by itself
	leastProbe    = 100  // requests of a probe that doubles the rate
	closeProbe    = 300  // and of one between two rates: long prompts are few, and decide
	mostProbe     = 4000 // requests of a probe; bounds the cost of probes of short requests
	probeTurns    = 20   // times that the requests in flight are replaced in a probe
	mostDoublings = 16   // of the rate
	// sustainedWidth is the relative width of the last bracket: two rates are tried within a doubling.
	sustainedWidth = 0.3
	keepsUp        = 0.9 // share of the arrivals that is answered as fast as it comes

	chosenRates    = 5
	lowestShare    = 0.2  // of the rate that the weakest system sustains
	highestShare   = 1.1  // of the rate that the best system sustains
	useful         = 0.25 // of the best: a system that sustains less does not set the lowest rate
	chosenRequests = 200  // a run at the least: P99 of fewer is noisy
	mostRunOf      = 2000 // requests of a chosen run
)

// ChooseRates replaces the rates of runs whose configuration names none, by the same for all with
// one model and traffic, and their number of requests if not named either. It returns the sustained
// rate of each system, from which the rates follow. Requests come from the first seed, so the
// choice is reproducible.
func ChooseRates(ctx context.Context, simulate run.Runner, variants [][]config.Point) ([]Chosen,
	error) {
	var all []Chosen
	known := map[string]int{} // by model and traffic
	for i, runs := range variants {
		if !runs[0].NoRate {
			continue
		}
		key, w := traffic(runs), &runs[0].Workload
		if hasTurns(w) {
			return nil, fmt.Errorf("workload.rate: not set, and requests of %s wait for the answers "+
				"before them; set it to sessions/s", w.Trace)
		}
		if _, ok := known[key]; !ok {
			systems, err := sustainedBy(ctx, simulate, slices.DeleteFunc(slices.Clone(variants),
				func(of []config.Point) bool { return !of[0].NoRate || traffic(of) != key }))
			if err != nil {
				return nil, err
			}
			known[key] = len(all)
			all = append(all, Chosen{runs[0].Model, ratesFor(systems), systems})
		}
		c := &all[known[key]]
		variants[i] = underRates(runs, c.Rates, requestsFor(c.Systems), traces.Count(*w))
	}
	return all, nil
}

// traffic names the model and the traffic of a variant.
func traffic(runs []config.Point) string {
	w := runs[0].Workload
	w.Rate = 0
	return fmt.Sprint(runs[0].Model, w)
}

// underRates returns the runs of a variant under other rates, and with n requests if it names no
// number and its traffic has as many as count.
func underRates(runs []config.Point, rates []float64, n, count int) (all []config.Point) {
	for from := range runs {
		first := &runs[from]
		if from > 0 && first.System.Name == runs[from-1].System.Name &&
			first.Fleet.Replicas == runs[from-1].Fleet.Replicas {
			continue
		}
		for _, rate := range rates {
			for _, p := range runs[from:] {
				if p.System.Name != first.System.Name || p.Fleet.Replicas != first.Fleet.Replicas ||
					p.Workload.Rate != first.Workload.Rate {
					break
				}
				w := &p.Workload
				if p.NoRequests && (!w.FromFile() || w.Requests > 0 || n < count) {
					w.Requests = n
				}
				w.Rate, p.NoRate = rate, false
				p.Name = config.PointName(&p)
				all = append(all, p)
			}
		}
	}
	return all
}

// Chosen are the rates of one model and traffic, with the sustained rates behind them.
type Chosen struct {
	Model   string
	Rates   []float64
	Systems []Sustained
}

// sustainedBy measures the systems of variants, each once.
func sustainedBy(ctx context.Context, simulate run.Runner, variants [][]config.Point) ([]Sustained,
	error) {
	var points []config.Point
	seen, hashes := map[string]bool{}, config.NewHasher()
	for _, runs := range variants {
		for _, p := range runs {
			p.Workload.Rate, p.Seed, p.Output, p.SLO = 1, variants[0][0].Seed, config.Output{}, config.SLO{}
			p.Metrics = metrics.Cutoff{Warmup: metrics.CutNone, Drain: metrics.CutNone}
			hash, err := hashes.Hash(&p)
			if err != nil {
				return nil, err
			}
			if !seen[hash] {
				seen[hash], points = true, append(points, p)
			}
		}
	}
	all := make([]Sustained, len(points))
	limit, inner := errgroup.WithContext(ctx)
	limit.SetLimit(runtime.GOMAXPROCS(0))
	for i := range points {
		limit.Go(func() (err error) {
			all[i], err = sustained(inner, simulate, &points[i])
			return err
		})
	}
	return all, limit.Wait()
}

// sustained measures one system: it doubles the rate, from the rate of a server with one request at
// a time, until requests arrive faster than they are answered, and tries two rates between the last
// two. Throughput under overload is not enough, because a thrashing system answers fewer requests
// than before.
func sustained(ctx context.Context, simulate run.Runner, p *config.Point) (Sustained, error) {
	s := Sustained{System: p.SystemLabel()}
	var err error
	if s.alone, err = serveAlone(ctx, simulate, *p); err != nil || s.alone == 0 {
		return s, err
	}
	replicas := float64(max(1, p.Fleet.Replicas))
	line := bracket.Line{Most: math.Exp2(mostDoublings) * s.alone, Width: sustainedWidth,
		Geometric: true}
	s.Rate = s.alone
	_, err = line.Find([]bracket.Tried{{At: s.alone, Below: true}},
		func(rate float64, bisects bool) (bool, error) {
			least := leastProbe
			if bisects {
				least = closeProbe
			}
			inFlight := replicas * rate / s.alone
			n := min(max(least, int(probeTurns*inFlight)), mostProbe)
			got, err := answered(ctx, simulate, *p, rate, n)
			s.Rate = max(s.Rate, got)
			return got >= keepsUp*rate, err
		})
	return s, err
}

// serveAlone returns the throughput in requests/s with one closed-loop client per replica.
func serveAlone(ctx context.Context, simulate run.Runner, p config.Point) (float64, error) {
	w := &p.Workload
	w.Arrivals, w.Rate, w.ThinkS, w.Burstiness = traces.ArrivalsClosed, 0, 0, 1
	w.Concurrency = max(1, p.Fleet.Replicas)
	w.Requests = aloneRequests * w.Concurrency
	sum, err := simulate(ctx, p, run.Sink{Finished: func() {}})
	if err != nil || sum.Completed == 0 || sum.SimulatedS == 0 {
		return 0, err
	}
	return float64(sum.Completed) / sum.SimulatedS, nil
}

// answered returns the throughput in requests/s while n requests arrive evenly at a rate. It counts
// the second half of the arrivals, after the queue has filled.
func answered(ctx context.Context, simulate run.Runner, p config.Point, rate float64, n int) (
	float64, error) {
	w := &p.Workload
	w.Arrivals, w.Rate, w.Burstiness, w.Requests = traces.ArrivalsFixed, rate, 1, n
	half := &window{to: des.Time(float64(n) / rate * float64(des.Second))}
	half.from = half.to / 2
	sum, err := simulate(ctx, p, run.Sink{Finished: func() {}, Watch: half})
	if err != nil && !errors.Is(err, errSeen) {
		return 0, err
	}
	if ended := sum.Completed + sum.Rejected; err == nil && ended < n { // the file has no more
		half.to = des.Time(float64(ended) / rate * float64(des.Second))
	}
	return float64(half.count) / (half.to - half.from).Seconds(), nil
}

// errSeen ends a run after enough is known.
var errSeen = errors.New("seen")

// window counts the requests that a run answers within a time window, and then ends the run. A
// rejected request counts too, because it takes no time. It is a run.Watcher.
type window struct {
	from, to des.Time
	count    int
	over     bool
}

// Ended implements run.Watcher.
func (w *window) Ended(r *metrics.Request) {
	at := r.LastToken
	if r.Rejected != "" {
		at = r.Arrival
	}
	switch {
	case at > w.to:
		w.over = true
	case at > w.from:
		w.count++
	}
}

// Enough implements run.Watcher.
func (w *window) Enough() error {
	if w.over {
		return errSeen
	}
	return nil
}

// ratesFor spreads the rates evenly from a fifth of the sustained rate of the weakest useful system
// to slightly beyond the best, rounded to two digits.
func ratesFor(all []Sustained) []float64 {
	best := slices.MaxFunc(all, compareRates).Rate
	if best == 0 {
		return []float64{1} // nothing is served at any rate; the run has the reason
	}
	weakest := best
	for _, s := range all {
		if s.Rate >= useful*best {
			weakest = min(weakest, s.Rate)
		}
	}
	low, high := lowestShare*weakest, highestShare*best
	var rates []float64
	for i := range chosenRates {
		rate := stats.Significant(low+(high-low)*float64(i)/(chosenRates-1), 2)
		if !slices.Contains(rates, rate) {
			rates = append(rates, rate)
		}
	}
	return rates
}

// requestsFor returns a number of requests that suffices to show the queue of the fastest system at
// its sustained rate.
func requestsFor(all []Sustained) int {
	most := 0.0
	for _, s := range all {
		if s.alone > 0 {
			most = max(most, turnovers*s.Rate/s.alone)
		}
	}
	return min(max(chosenRequests, roundUp(most)), mostRunOf)
}

func compareRates(a, b Sustained) int { return cmp.Compare(a.Rate, b.Rate) }

// String describes the chosen rates and the reason.
func (c *Chosen) String() string {
	rates := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Rates), " ", ", "), "[]")
	var words, done []string
	for _, s := range c.Systems {
		if slices.Contains(done, s.System) {
			continue
		}
		done = append(done, s.System)
		words = append(words, s.System+" "+c.sustains(s.System))
	}
	return fmt.Sprintf("%s: chosen from what the systems sustain in short runs (%s %s)", rates,
		strings.Join(words, ", "), loadRate)
}

// sustains returns a system's sustained rate in words; a range if variants of the system differ.
func (c *Chosen) sustains(system string) string {
	least, most := math.Inf(1), 0.0
	for _, s := range c.Systems {
		if s.System == system {
			least, most = min(least, s.Rate), max(most, s.Rate)
		}
	}
	low, high := fmt.Sprint(stats.Significant(least, 2)), fmt.Sprint(stats.Significant(most, 2))
	switch {
	case most == 0:
		return "none"
	case low == high:
		return high
	}
	return low + " to " + high
}
