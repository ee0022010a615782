package papers

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// prefixSpec is how requests with prefix hits are served.
type prefixSpec struct {
	Hits    []float64 `toml:"hits"`     // shares of the prompt, on the card's own link
	Links   []float64 `toml:"links"`    // GB/s each way
	LinkHit float64   `toml:"link_hit"` // share of the prompt at these
	Rate    float64   `toml:"rate"`     // req/s of TTFT and TBT
	Seeds   []uint64  `toml:"seeds"`    // of these
	Sets    []string  `toml:"sets"`     // over the default experiment
	Systems []struct {
		Name string   `toml:"name"`
		Sets []string `toml:"sets"`
	} `toml:"systems"`
}

// prefixes measures for each system, hit and link TTFT and TBT at one rate, TTFT of a request by
// itself, and goodput.
func (l *Studies) prefixes(e *experiments.Experiment) error {
	var spec prefixSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	t := run.NewTable("system", "hit", "link_gb_s", "ttft_alone_s", "ttft_s", "tbt_p99_s",
		"loaded_gib", "goodput", "low", "high", "limited_by")
	for i := range spec.Systems {
		for _, hit := range spec.Hits {
			if err := l.prefix(&spec, i, hit, 0, t); err != nil {
				return err
			}
		}
		for _, link := range spec.Links {
			if err := l.prefix(&spec, i, spec.LinkHit, link, t); err != nil {
				return err
			}
		}
	}
	return l.write(e, t)
}

// prefix adds the row of a system at a hit and a link, 0 for the card's own.
func (l *Studies) prefix(spec *prefixSpec, system int, hit, link float64, t *run.Table) error {
	s := &spec.Systems[system]
	sets := slices.Concat(spec.Sets, s.Sets, []string{fmt.Sprintf("workload.prefix_hit=%g", hit),
		fmt.Sprintf("workload.rate=%g", spec.Rate)})
	if link > 0 {
		sets = append(sets, fmt.Sprintf("card.link_h2d=%g", link), fmt.Sprintf("card.link_d2h=%g", link))
	}
	c, err := config.LoadSweep("default", append(sets, l.Sets...), nil)
	if err != nil {
		return err
	}
	c.Alter = l.alter
	candidates, err := capacity.Candidates(c)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	alone, err := l.meanOf(candidates[0].Point, spec, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	busy, err := l.meanOf(candidates[0].Point, spec, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	l.planned(capacity.GuessRuns(&c.Goodput, candidates...))
	found, err := l.search(&c.Goodput, candidates)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	g := &found[0]
	low, high := g.Interval()
	t.Add(s.Name, hit, link, alone.TTFT.Mean, busy.TTFT.Mean, busy.TBT.P99,
		float64(alone.H2DBytes)/(1<<30), g.Goodput, low, high, strings.ReplaceAll(g.LimitedBy, ",", ";"))
	return nil
}

// meanOf returns means over seeds of a point's runs, of so many requests where given.
func (l *Studies) meanOf(p config.Point, spec *prefixSpec, requests int) (mean sim.Summary,
	err error) {
	p.Workload.Rate = spec.Rate
	for _, seed := range spec.Seeds {
		p.Seed = seed
		if requests > 0 {
			p.Workload.Requests, p.Workload.OutputScale = requests, 1e-3
		}
		l.alter(&p)
		sum, err := l.Run(l.ctx, p, run.Sink{Requests: io.Discard})
		if err != nil {
			return mean, err
		}
		n := float64(len(spec.Seeds))
		mean.TTFT.Mean += sum.TTFT.Mean / n
		mean.TBT.P99 += sum.TBT.P99 / n
		mean.H2DBytes += loaded(&sum) / int64(len(spec.Seeds))
	}
	return mean, nil
}

// loaded is the bytes that came to HBM in a run: to the cache of a system that offloads, or from
// tiers.
func loaded(s *sim.Summary) int64 {
	n := s.H2DBytes
	if p := s.PrefixCache; p != nil {
		n += p.DRAM.LoadedBytes + p.SSD.LoadedBytes
	}
	return n
}
