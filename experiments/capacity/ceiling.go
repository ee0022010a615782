package capacity

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
)

// ceiling is the largest load of an option beyond the load asked for, and what limits it.
type ceiling struct {
	load      float64 // largest that the replicas hold
	fails     float64 // smallest that they do not; infinite when none was found
	limitedBy []string
	beyond    Share // the limit that is missed by the most there
	effects   []Effect
	at        float64 // the load of the effects
	requests  int     // of the longest run
}

// Effect is the effect of 10 % more of a resource at the smallest load that the replicas fail, or
// at the load asked for if no load fails: the decrease of the limit that is nearest or missed by
// the most.
type Effect struct {
	Resource string  `json:"resource"`
	Less     float64 `json:"less"` // decrease over the limit's value; negative if it grows
}

const (
	// ceilingWidth is the relative width at which the search for the largest load stops.
	ceilingWidth = 0.05
	// more is the factor on a resource to measure its effect.
	more = 1.1
	// leastEffect is the smallest effect of a limiting resource.
	leastEffect = 0.005
)

// measure finds the ceiling of an option.
func (b *buyer) measure(ctx context.Context, o *option) error {
	c := &ceiling{load: o.target, fails: math.Inf(1), at: o.target}
	o.capacity = c
	n := o.found.replicas
	c.requests = o.found.work.Requests
	spec := b.sweep.Goodput
	spec.Start, spec.Coarse, spec.Width = o.target, true, max(spec.Width, ceilingWidth)
	spec.Max = max(mostLoad(&o.Point.Workload, o.load, spec.Max), o.target)
	s := &search{spec: spec, seeds: o.Seeds,
		probe: func(ctx context.Context, _ string, load float64, _ []uint64) (*attempt, error) {
			return b.serve(ctx, o, stageBisect, n, load, o.found.work.Requests)
		}}
	if err := s.run(ctx); err != nil {
		return err
	}
	for _, a := range s.shared {
		c.requests = max(c.requests, a.work.Requests)
	}
	o.runs = append(o.runs, s.shared...)
	c.load, c.fails = bracket.Ends(s.outcomes())
	if !math.IsInf(c.fails, 1) {
		c.limitedBy, c.at = s.at(c.fails).why(), c.fails
	}
	return b.effects(ctx, o)
}

// effects finds the limiting resources of an option.
func (b *buyer) effects(ctx context.Context, o *option) error {
	c, n := o.capacity, o.found.replicas
	before, err := b.once(ctx, o, stageEffect, n, c.at, c.requests)
	if err != nil {
		return err
	}
	o.runs = append(o.runs, before)
	worst := before.worst()
	if !math.IsInf(c.fails, 1) {
		c.beyond = worst
	}
	for _, r := range resources {
		changed := *o
		if ok, err := r.grow(&changed.Point); err != nil {
			return err
		} else if !ok {
			continue
		}
		after, err := b.once(ctx, &changed, stageEffect+" of "+r.name, n, c.at, c.requests)
		if err != nil {
			return err
		}
		o.runs = append(o.runs, after)
		for _, s := range after.shares() {
			if s.Limit == worst.Limit && worst.Of > 0 {
				c.effects = append(c.effects, Effect{r.name, 1 - s.Of/worst.Of})
			}
		}
	}
	slices.SortStableFunc(c.effects, func(x, y Effect) int { return cmp.Compare(y.Less, x.Less) })
	return nil
}

// short names the limiting resources, largest effect first.
func (c *ceiling) short() []string {
	var names []string
	for _, e := range c.effects {
		if e.Less >= leastEffect {
			names = append(names, e.Resource)
		}
	}
	return names
}

// resource is a resource that may limit a server.
type resource struct {
	name    string
	offload bool     // only if KV is in host memory
	keys    []string // that set it
}

var resources = []resource{
	{"HBM bandwidth", false, []string{"card.hbm_bandwidth"}},
	{"arithmetic", false, []string{"card.peak_fp16"}},
	{"HBM", false, []string{"system.kv_gib", "card.hbm_size"}},
	{"host link", true, []string{"card.link_h2d", "card.link_d2h"}},
	{"host memory", true, []string{"system.dram_gib"}},
	{"CPU", false, []string{"card.cpu_speed"}},
	{"requests a batch", false, []string{"system.max_requests"}},
	{"tokens a step", false, []string{"system.max_tokens", "prefill.chunk_tokens"}},
}

// grow adds 10 % of the resource to a point. It returns false if the point has none.
func (r *resource) grow(p *config.Point) (bool, error) {
	if r.offload && !p.System.Offload.On {
		return false, nil
	}
	machine, err := p.Machine()
	p.Card = maps.Clone(p.Card)
	for _, key := range r.keys {
		if figure, ok := strings.CutPrefix(key, "card."); ok && err == nil {
			if p.Card == nil {
				p.Card = hw.Changes{}
			}
			p.Card[figure] = machine.Changeable(figure) * more
		} else if f, _ := p.Field(key); f.CanInt() {
			f.SetInt(int64(math.Ceil(float64(f.Int()) * more)))
		} else if f.CanFloat() {
			f.SetFloat(f.Float() * more)
		}
	}
	return true, err
}
