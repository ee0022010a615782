package papers

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// goodputs finds the goodput of the systems in the default experiment with settings. prepare is
// called for each candidate before the search and may run the candidate alone.
func (l *Studies) goodputs(sets []string, prepare func(*capacity.Candidate) error) (
	[]capacity.Goodput, error) {
	s, candidates, err := l.candidates("default", sets...)
	if err != nil {
		return nil, err
	}
	for i := range candidates {
		if err := prepare(&candidates[i]); err != nil {
			return nil, err
		}
	}
	l.Planned(capacity.GuessRuns(&s.Goodput, candidates...))
	return l.search(&s.Goodput, candidates)
}

// once makes a run that is not stored.
func (l *Studies) once(p config.Point) (sim.Summary, error) {
	l.alter(&p)
	return l.Run(l.ctx, p, run.Sink{Requests: io.Discard})
}

// goodputCells returns the cells of a goodput: the rate, its interval and its limit.
func goodputCells(g *capacity.Goodput) []any {
	low, high := g.Interval()
	return []any{g.Goodput, low, high, strings.ReplaceAll(g.LimitedBy, ",", ";")}
}

// prefixSpec is the study.toml of the prefix hit study.
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

// prefixes measures, for each system, hit share and link bandwidth, TTFT and TBT at one rate, TTFT
// of a single request, and goodput. A link of 0 is the card's own.
func (l *Studies) prefixes(spec *prefixSpec, t *run.Table) error {
	var at [][2]float64 // hit and link
	for _, hit := range spec.Hits {
		at = append(at, [2]float64{hit, 0})
	}
	for _, link := range spec.Links {
		at = append(at, [2]float64{spec.LinkHit, link})
	}
	for _, s := range spec.Systems {
		for _, a := range at {
			sets := slices.Concat(spec.Sets, s.Sets, []string{
				fmt.Sprintf("workload.prefix_hit=%g", a[0]), fmt.Sprintf("workload.rate=%g", spec.Rate)})
			if a[1] > 0 {
				sets = append(sets, fmt.Sprintf("card.link_h2d=%g", a[1]),
					fmt.Sprintf("card.link_d2h=%g", a[1]))
			}
			cells := []any{s.Name, a[0], a[1]}
			found, err := l.goodputs(sets, func(c *capacity.Candidate) error {
				alone, err := l.meanOf(c.Point, spec, true)
				if err != nil {
					return err
				}
				busy, err := l.meanOf(c.Point, spec, false)
				cells = append(cells, alone.TTFT.Mean, busy.TTFT.Mean, busy.TBT.P99,
					float64(alone.H2DBytes)/(1<<30))
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			t.Add(append(cells, goodputCells(&found[0])...)...)
		}
	}
	return nil
}

// meanOf returns means over the seeds of a point's runs; with alone, of runs with one request and
// one output token. Loaded bytes are the bytes moved to HBM: by offloading, or from prefix cache
// tiers.
func (l *Studies) meanOf(p config.Point, spec *prefixSpec, alone bool) (mean sim.Summary,
	err error) {
	if p.Workload.Rate = spec.Rate; alone {
		p.Workload.Requests, p.Workload.OutputScale = 1, 1e-3
	}
	n := len(spec.Seeds)
	for _, p.Seed = range spec.Seeds {
		sum, err := l.once(p)
		if err != nil {
			return mean, err
		}
		loaded := sum.H2DBytes
		if c := sum.PrefixCache; c != nil {
			loaded += c.DRAM.LoadedBytes + c.SSD.LoadedBytes
		}
		mean.TTFT.Mean += sum.TTFT.Mean / float64(n)
		mean.TBT.P99 += sum.TBT.P99 / float64(n)
		mean.H2DBytes += loaded / int64(n)
	}
	return mean, nil
}

// longSpec is the study.toml of the long prompt study.
type longSpec struct {
	Tokens []int    `toml:"tokens"`
	Output int      `toml:"output_tokens"`
	Factor float64  `toml:"factor"`
	Sets   []string `toml:"sets"` // over the default experiment
}

// longPhases are the prompt phases that have a column, by their names in a summary.
var longPhases = []string{"linears", "prefill_attention", "prefill_index", "load_stall",
	"save_stall", "host"}

// longPrompts measures for each length and system the unloaded time to the first token, its phases,
// and the goodput.
func (l *Studies) longPrompts(spec *longSpec, t *run.Table) error {
	for _, tokens := range spec.Tokens {
		// A search needs a service level and a start rate; each candidate sets its own below.
		sets := append(slices.Clone(spec.Sets), fmt.Sprintf("workload.prompt_lengths=fixed(%d)", tokens),
			fmt.Sprintf("workload.output_lengths=fixed(%d)", spec.Output), "slo.ttft_s=1",
			"workload.rate=1")
		var alone []sim.Summary
		found, err := l.goodputs(sets, func(c *capacity.Candidate) error {
			p := c.Point
			p.Seed, p.Workload.Rate, p.Workload.Requests = 1, 1/float64(tokens), 1
			p.Workload.OutputScale = 1 / float64(spec.Output) // the first token alone
			sum, err := l.once(p)
			if ttft := sum.TTFT.Mean; ttft > 0 {
				c.Point.SLO.TTFTS, c.Start = spec.Factor*ttft, 0.5/ttft
			}
			alone = append(alone, sum)
			return err
		})
		if err != nil {
			return fmt.Errorf("%d tokens: %w", tokens, err)
		}
		for i := range found {
			addLong(t, &found[i], &alone[i], tokens, spec.Factor)
		}
	}
	return nil
}

// addLong adds the row of a system: only its name if it refuses the prompt.
func addLong(t *run.Table, g *capacity.Goodput, alone *sim.Summary, tokens int, factor float64) {
	ttft, saved := alone.TTFT.Mean, float64(alone.D2HBytes)
	cells := slices.Concat([]any{g.System, tokens, ttft}, goodputCells(g))
	if alone.Completed > 0 {
		cells = append(cells, factor*ttft, saved/25e9/ttft, saved/(1<<30))
	} else {
		cells = append(cells, 0.0, 0.0, 0.0)
	}
	all, named := 0.0, 0.0
	// Sort, because sums of floats depend on the order.
	for _, name := range slices.Sorted(maps.Keys(alone.PhaseS)) {
		all += alone.PhaseS[name]
	}
	for _, name := range longPhases {
		cells, named = append(cells, alone.PhaseS[name]), named+alone.PhaseS[name]
	}
	t.Add(append(cells, all-named)...)
}
