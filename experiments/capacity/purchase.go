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

// option is a purchase candidate: n replicas, each on its own GPUs.
type option struct {
	Candidate
	index    int    // of the candidates
	family   string // label of the candidate whose step size is another one; empty: none
	load     float64
	asked    limits // the service level
	margin          // on top of asked
	price    Price
	machine  string  // model, card, engine and GPUs of a replica
	gpus     int     // of a replica
	replica  float64 // USD an hour
	perByte  float64 // of a GPU, over the bandwidth of its HBM
	outcome  string
	most     int // replicas that were looked at
	found    *attempt
	expected *attempt // of all replicas, spare ones too, under the load
	runs     []*attempt
	capacity *ceiling // of the cheapest
	traffic  tooLong
}

// Outcomes of options.
const (
	Meets    = "meets"     // the service level, at the price given
	Dearer   = "dearer"    // than another that meets it, if it does at all
	Misses   = "misses"    // with any number of replicas
	TooLarge = "too large" // the model, for the memory of the GPUs
	TooShort = "too short" // the context, for the traffic
)

// buyer looks for the cheapest of the offers.
type buyer struct {
	*Planner
	*Offers
	best float64 // USD an hour of the cheapest found
}

const (
	finalists = 3 // cheapest options whose largest load and limits are looked for
	// Options are examined in rounds, independently within a round, so the runs do not depend on the
	// number of workers. The first round is small and sets a price. Each later round is roundGrowth
	// times as large, because the price hardly falls any more.
	firstRound, roundGrowth = 2, 4
)

// Offers are the candidates of a sweep with a [plan], each at its price.
type Offers struct {
	sweep    *config.Sweep
	prices   *Prices
	options  []*option
	short    []*option // whose context is too short
	bare     *option   // the cheapest without any margin; nil where none holds the level
	question Question
}

// OffersOf lists the purchase options of a sweep. It returns an error if the question is invalid.
func OffersOf(ctx context.Context, s *config.Sweep) (*Offers, error) {
	prices, err := LoadPrices(s.Plan.PricesFile)
	if err != nil {
		return nil, err
	}
	f := &Offers{sweep: s, prices: prices}
	candidates, err := UnderLoad(ctx, s)
	if err != nil {
		return nil, err
	}
	seen := samples{}
	for i, c := range candidates {
		o := &option{Candidate: c, index: i, gpus: c.Point.System.TensorParallel}
		var unit string
		o.load, unit = loadOf(&c.Point.Workload)
		key := "workload.rate"
		if unit == loadClients {
			key = "workload.concurrency"
		}
		o.margin = margin{target: o.load * (1 + s.Plan.Headroom), spare: s.Plan.Spare}
		if err := needsTooMany(&c.Point.Workload, key); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Source(), err)
		}
		if o.price, err = prices.Of(s.Plan.Prices, c.Point.GPU); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Source(), err)
		}
		o.replica = float64(o.gpus) * o.price.USDPerHour
		p := &c.Point
		o.machine = fmt.Sprint(p.Model, " ", p.GPU, " ", p.Card, " ", p.System.Engine, " ", o.gpus)
		if err := o.level(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Source(), err)
		}
		if o.traffic, err = seen.tooLong(&o.Point, false); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Source(), err)
		}
		if o.traffic.share() > mostTooLong {
			f.short = append(f.short, o)
			continue
		}
		f.options = append(f.options, o)
	}
	switch {
	case len(f.options) > 0:
		f.question, err = questionOf(f.options, seen, s.Plan)
		return f, err
	case len(f.short) > 0:
		return nil, fmt.Errorf("%s: %w", s.Source(), tooShort(f.short))
	}
	return nil, fmt.Errorf("%s: no candidate fits its GPUs: %s", s.Source(), s.Unfit[0].Reason)
}

// level sets the service level of an option, as asked for and reduced by the prediction error, and
// its price per HBM bandwidth.
func (o *option) level() (err error) {
	if o.asked, err = limitsOf(&o.Point); err != nil {
		return err
	}
	if o.slo, err = o.asked.lessError(&o.Point); err != nil {
		return err
	}
	if len(o.slo.bounds) == 0 {
		return errors.New("[slo] has no bound; without one, the cheapest always serves: set slo.ttft_s" +
			", slo.tbt_s, slo.e2e_s or slo.delay_s")
	}
	machine, err := o.Point.Machine()
	if err != nil {
		return err
	}
	o.perByte = o.price.USDPerHour / machine.GPU.HBMBandwidth.SI()
	return nil
}

// Purchase finds the cheapest offer, and its number of replicas, that serves the configured traffic
// within the service level.
func (p *Planner) Purchase(ctx context.Context, f *Offers) (*Purchase, error) {
	b := &buyer{p, f, math.Inf(1)}
	b.start()
	if err := b.look(ctx); err != nil {
		return nil, err
	}
	return f.answer()
}

// look finds the offers, the cheapest offer without a margin, and the capacity of the cheapest few.
func (b *buyer) look(ctx context.Context) error {
	if err := b.choose(ctx, b.options); err != nil {
		return err
	}
	if !b.sweep.StepsGiven {
		steps := otherSteps(b.options, b.best)
		if err := b.choose(ctx, steps); err != nil {
			return err
		}
		b.options = append(b.options, steps...)
	}
	best := ranked(b.options)
	price := "none holds the level"
	if len(best) > 0 {
		price = "the cheapest is " + USD(b.best) + " an hour"
	}
	b.Say(price + "; looking for what is cheaper without a margin")
	if err := b.withoutMargin(ctx, best); err != nil {
		return err
	}
	b.Say(price + "; looking how far it is from its limits")
	if len(best) == 0 {
		return b.nearest(ctx, b.options)
	}
	if err := b.each(ctx, best, b.expect); err != nil {
		return err
	}
	return b.each(ctx, best[:min(len(best), finalists)], b.measure)
}

// choose finds the number of replicas for each option that can still be as cheap as the cheapest
// found.
func (b *buyer) choose(ctx context.Context, options []*option) error {
	b.Planned(len(options))
	order := inTurn(options)
	for size := firstRound; len(order) > 0; size *= roundGrowth {
		round := order[:min(size, len(order))]
		order = order[len(round):]
		if err := b.each(ctx, round, b.need); err != nil {
			return err
		}
		for _, o := range round {
			if o.found != nil {
				b.best = min(b.best, o.usd())
			}
		}
		if !math.IsInf(b.best, 1) {
			b.Say("best so far " + USD(b.best) + " an hour")
		}
	}
	return nil
}

// need finds the number of replicas for an option at no more than the best price.
func (b *buyer) need(ctx context.Context, o *option) error {
	defer b.Finished()
	most := b.sweep.Plan.MaxReplicas - o.spare
	affordable := most
	if !math.IsInf(b.best, 1) {
		affordable = int(min(float64(most), math.Floor(b.best/o.replica+1e-9)-float64(o.spare)))
	}
	o.most, o.outcome = max(affordable, 0), Dearer
	if affordable <= 0 {
		return nil
	}
	found, err := b.least(ctx, o, affordable, affordable < most)
	if err != nil {
		return err
	}
	if o.found = found; found != nil {
		o.outcome = Meets
	} else if affordable == most {
		o.outcome = Misses
	}
	return nil
}

// expect runs all replicas of an option, spare ones too, under the load without its margin. Its
// warnings include the effect of other step times if the run is near a limit.
func (b *buyer) expect(ctx context.Context, o *option) error {
	asked := *o
	asked.slo = o.asked
	r, err := b.once(ctx, &asked, stageExpected, o.replicas(), o.load, o.found.work.Requests)
	o.expected, o.runs = r, append(o.runs, r)
	return err
}

// withoutMargin finds the cheapest option that meets the service level as asked for, without
// headroom and spare replicas. It costs no more than the best option with a margin, so that price
// is tried first.
func (b *buyer) withoutMargin(ctx context.Context, best []*option) error {
	silent := *b.Planner
	silent.Planned, silent.Finished, silent.Say = nil, nil, nil // the candidates were counted before
	silent.silence()
	q := &buyer{&silent, b.Offers, b.best}
	var bare []*option
	of := map[*option]*option{}
	for _, o := range b.options {
		c := *o
		c.margin = margin{target: o.load, slo: o.asked}
		c.found, c.runs = nil, nil
		bare, of[&c] = append(bare, &c), o
	}
	first := slices.IndexFunc(bare, func(c *option) bool { return len(best) > 0 && of[c] == best[0] })
	if first >= 0 {
		if err := q.choose(ctx, bare[first:first+1]); err != nil {
			return err
		}
	}
	if err := q.choose(ctx, slices.DeleteFunc(slices.Clone(bare),
		func(c *option) bool { return c.found != nil })); err != nil {
		return err
	}
	for _, c := range bare {
		of[c].runs = append(of[c].runs, c.runs...)
	}
	if all := ranked(bare); len(all) > 0 {
		b.bare = all[0]
	}
	return nil
}

// inTurn orders options so that cheap runs soon yield a low price: first one option per machine and
// system, then the second of each, and so on. Within such a round, options with full attention and
// all KV in HBM go first because they simulate fastest, then options with the lowest price per HBM
// bandwidth. Options of the same machine and system are ordered by descending requests per batch,
// because large batches usually need the fewest replicas.
func inTurn(options []*option) []*option {
	type kind struct{ machine, system string }
	turn, seen := map[*option]int{}, map[kind]int{}
	order := slices.Clone(options)
	slices.SortStableFunc(order, func(x, y *option) int {
		return cmp.Compare(y.Point.System.MaxRequests, x.Point.System.MaxRequests)
	})
	for _, o := range order {
		k := kind{o.machine, o.Point.System.Name}
		turn[o] = seen[k]
		seen[k]++
	}
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

// each calls do for options in parallel.
func (b *buyer) each(ctx context.Context, options []*option,
	do func(context.Context, *option) error) error {
	candidates := make([]*Candidate, len(options))
	for i, o := range options {
		candidates[i] = &o.Candidate
	}
	return b.Planner.each(ctx, candidates, func(ctx context.Context, i int) error {
		return do(ctx, options[i])
	})
}

// replicas returns the number of replicas to buy, including spare ones.
func (o *option) replicas() int { return o.found.replicas + o.spare }

// usd returns the price of the option per hour.
func (o *option) usd() float64 { return float64(o.replicas()) * o.replica }

// ranked lists the options that meet the level, cheapest first. At equal price it prefers fewer
// GPUs, then the option farthest from its limits, then the earlier candidate.
func ranked(options []*option) []*option {
	met := slices.DeleteFunc(slices.Clone(options), func(o *option) bool { return o.found == nil })
	slices.SortFunc(met, func(x, y *option) int {
		if d := x.usd() - y.usd(); math.Abs(d) > 1e-9*x.usd() {
			return cmp.Compare(d, 0)
		}
		return cmp.Or(cmp.Compare(x.replicas()*x.gpus, y.replicas()*y.gpus),
			cmp.Compare(x.found.worst().Of, y.found.worst().Of), cmp.Compare(x.index, y.index))
	})
	return met
}

// nearest measures by how much each option misses that fails with any number of replicas: it
// simulates one whole replica under its share of the load.
func (b *buyer) nearest(ctx context.Context, options []*option) error {
	return b.each(ctx, options, func(ctx context.Context, o *option) error {
		most := b.sweep.Plan.MaxReplicas - o.spare
		replicas, load := most, o.target
		if _, unit := loadOf(&o.Point.Workload); replicas > 4 &&
			(unit == loadRate || unit == loadClients) {
			replicas, load = 1, o.target/float64(replicas)
		}
		r, err := b.once(ctx, o, stageMiss, replicas, load, 0)
		if err == nil && r.holds() { // but all of them together do not
			r, err = b.once(ctx, o, stageMiss, most, o.target, 0)
		}
		o.runs = append(o.runs, r)
		return err
	})
}
