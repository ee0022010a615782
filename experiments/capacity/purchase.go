package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// option is a candidate that may be bought: replicas of it, each on its GPUs.
type option struct {
	Candidate
	index    int // of the candidates
	load     float64
	slo      limits
	price    Price
	machine  string  // model, card, engine and GPUs of a replica
	gpus     int     // of a replica
	replica  float64 // USD an hour
	perByte  float64 // of a GPU, over the bandwidth of its HBM
	outcome  string
	most     int // replicas that were looked at
	found    *fleetRun
	runs     []*fleetRun
	capacity *ceiling // of the cheapest
}

// Outcomes on options.
const (
	Meets    = "meets"     // the service level, at the price given
	Dearer   = "dearer"    // than another that meets it, if it does at all
	Misses   = "misses"    // with any number of replicas
	TooLarge = "too large" // the model, for the memory of the GPUs
)

// buyer looks for the cheapest option.
type buyer struct {
	*Planner
	plan    config.Plan
	search  config.GoodputSearch
	traffic traffic
	alike   alike
}

const (
	finalists = 3 // cheapest options whose largest load and limits are looked for
	// Options are looked at in rounds, within which none knows of the others: what is tried does not
	// depend on the number of workers. The first is small and sets a price, each one after it is so
	// many times as large: the price hardly falls any more.
	firstRound, roundGrowth = 2, 4
)

// Offers are the candidates of a sweep with a [plan], each at its price.
type Offers struct {
	sweep   *config.Sweep
	prices  *Prices
	options []*option
}

// OffersOf lists what may be bought, or says what is wrong with the question.
func OffersOf(s *config.Sweep) (*Offers, error) {
	prices, err := LoadPrices(s.Plan.PricesFile)
	if err != nil {
		return nil, err
	}
	f := &Offers{sweep: s, prices: prices}
	candidates, err := purchasable(s)
	if err != nil {
		return nil, err
	}
	levels := map[string]*option{} // a first option of each machine and model
	for i, c := range candidates {
		o := &option{Candidate: c, index: i, gpus: c.Point.System.TensorParallel}
		var unit string
		o.load, unit = loadOf(&c.Point.Workload)
		key := "workload.rate"
		if unit == loadClients {
			key = "workload.concurrency"
		}
		if err := tooLong(&c.Point.Workload, key); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Source(), err)
		}
		if o.price, err = prices.Of(s.Plan.Prices, c.Point.GPU); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Source(), err)
		}
		o.replica = float64(o.gpus) * o.price.USDPerHour
		p := &c.Point
		o.machine = fmt.Sprint(p.Model, " ", p.GPU, " ", p.Card, " ", p.System.Engine, " ", o.gpus)
		first := levels[o.machine]
		if first == nil {
			first, levels[o.machine] = o, o
			if err := o.level(); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Source(), err)
			}
		}
		o.slo, o.perByte = first.slo, first.perByte
		f.options = append(f.options, o)
	}
	if len(f.options) == 0 && len(s.Unfit) > 0 {
		return nil, fmt.Errorf("%s: no candidate fits its GPUs: %s", s.Source(), s.Unfit[0].Reason)
	}
	return f, nil
}

// Points are those of the offers.
func (f *Offers) Points() []config.Point {
	var points []config.Point
	for _, o := range f.options {
		points = append(points, o.Point)
	}
	return points
}

// level finds the service level of an option, and its price for the bandwidth of its HBM.
func (o *option) level() (err error) {
	if o.slo, err = limitsOf(&o.Point); err != nil {
		return err
	}
	if len(o.slo.bounds) == 0 {
		return errors.New(
			"[slo] has no bound; without one, the cheapest always serves: set slo.ttft_s, slo.tbt_s, " +
				"slo.e2e_s or slo.delay_s",
		)
	}
	machine, err := o.Point.Machine()
	if err != nil {
		return err
	}
	o.perByte = o.price.USDPerHour / machine.GPU.HBMBandwidth.SI()
	return nil
}

// Purchase finds the cheapest offer, and how many replicas of it, that serve the traffic of the
// configuration within the service level. Notes are those of PointStore.Do.
func (p *Planner) Purchase(ctx context.Context, f *Offers) (*Purchase, []string, error) {
	b := &buyer{Planner: p, plan: *f.sweep.Plan, search: f.sweep.Goodput}
	b.start()
	if err := b.choose(ctx, f.options); err != nil {
		return nil, b.notes, err
	}
	var err error
	if best := ranked(f.options); len(best) > 0 {
		err = b.each(ctx, best[:min(len(best), finalists)], b.measure)
	} else {
		err = b.nearest(ctx, f.options)
	}
	if err != nil {
		return nil, b.notes, err
	}
	slices.Sort(b.notes)
	answer, err := f.answer()
	if err == nil {
		err = b.near(ctx, answer)
	}
	return answer, b.notes, err
}

// choose looks for the replicas that each option needs, while these can be as cheap as the
// cheapest found.
func (b *buyer) choose(ctx context.Context, options []*option) error {
	order := inTurn(options)
	best := math.Inf(1)
	for size := firstRound; len(order) > 0; size *= roundGrowth {
		round := order[:min(size, len(order))]
		order = order[len(round):]
		bound := best
		err := b.each(ctx, round, func(ctx context.Context, o *option) error {
			affordable := b.plan.MaxReplicas
			if !math.IsInf(bound, 1) {
				affordable = int(min(float64(b.plan.MaxReplicas), math.Floor(bound/o.replica+1e-9)))
			}
			o.most, o.outcome = affordable, Dearer
			if affordable == 0 {
				return nil
			}
			found, err := b.least(ctx, o, affordable, affordable < b.plan.MaxReplicas)
			if err != nil {
				return err
			}
			if o.found = found; found != nil {
				o.outcome = Meets
			} else if affordable == b.plan.MaxReplicas {
				o.outcome = Misses
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, o := range round {
			if o.found != nil {
				best = min(best, o.usd())
			}
		}
	}
	return nil
}

// inTurn orders options so that a low price is known soon, from runs that cost little: first one
// of each machine and system, then another of each. Of these, those go first that are simulated the
// fastest, with full attention and all KV in HBM, then those of the lowest price for the bandwidth
// of HBM. Of each, those with the highest limits on a batch go first: where a run does not come to
// the limits of the others, they need none (alike.go).
func inTurn(options []*option) []*option {
	type kind struct{ machine, system string }
	turn, seen := map[*option]int{}, map[kind]int{}
	byLimit := slices.Clone(options)
	slices.SortStableFunc(byLimit, func(x, y *option) int {
		xRequests, xTokens := batchLimits(&x.Point.System)
		yRequests, yTokens := batchLimits(&y.Point.System)
		return cmp.Or(cmp.Compare(yRequests, xRequests), cmp.Compare(yTokens, xTokens))
	})
	for _, o := range byLimit {
		k := kind{o.machine, o.Point.System.Name}
		turn[o] = seen[k]
		seen[k]++
	}
	order := byLimit
	slices.SortStableFunc(order, func(x, y *option) int {
		dear := func(o *option) int {
			if stock(&o.Point.System) {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(turn[x], turn[y]), cmp.Compare(dear(x), dear(y)),
			cmp.Compare(x.perByte, y.perByte))
	})
	return order
}

// each does something for options side by side.
func (b *buyer) each(ctx context.Context, options []*option,
	do func(context.Context, *option) error) error {
	points := make([]*config.Point, len(options))
	for i, o := range options {
		points[i] = &o.Point
	}
	return b.Planner.each(ctx, points, func(ctx context.Context, i int) error {
		if err := do(ctx, options[i]); err != nil {
			return fmt.Errorf("%s: %w", options[i].Label, err)
		}
		return nil
	})
}

// usd is what the option costs an hour.
func (o *option) usd() float64 { return float64(o.found.replicas) * o.replica }

// ranked lists the options that meet the level: the cheapest first, at one price that of fewer
// GPUs, of these the one that is farthest from its limits, then the earlier candidate.
func ranked(options []*option) []*option {
	met := slices.DeleteFunc(slices.Clone(options), func(o *option) bool { return o.found == nil })
	slices.SortFunc(met, func(x, y *option) int {
		if d := x.usd() - y.usd(); math.Abs(d) > 1e-9*x.usd() {
			return cmp.Compare(d, 0)
		}
		nearX, _ := x.found.severity()
		nearY, _ := y.found.severity()
		return cmp.Or(cmp.Compare(x.found.replicas*x.gpus, y.found.replicas*y.gpus),
			cmp.Compare(nearX.Of, nearY.Of), cmp.Compare(x.index, y.index))
	})
	return met
}

// nearest finds how near each option comes that no number of replicas makes hold: one replica
// under its share of the load, whole.
func (b *buyer) nearest(ctx context.Context, options []*option) error {
	return b.each(ctx, options, func(ctx context.Context, o *option) error {
		replicas, load := b.plan.MaxReplicas, o.load
		if _, unit := loadOf(&o.Point.Workload); replicas > 4 &&
			(unit == loadRate || unit == loadClients) {
			replicas, load = 1, o.load/float64(replicas)
		}
		r, err := b.once(ctx, o, stageMiss, replicas, load, 0, true)
		if err == nil && r.holds() { // but all of them together do not
			r, err = b.once(ctx, o, stageMiss, b.plan.MaxReplicas, o.load, 0, true)
		}
		o.runs = append(o.runs, r)
		return err
	})
}
