package papers

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// longSpec is how long prompts are served.
type longSpec struct {
	Tokens []int    `toml:"tokens"`
	Output int      `toml:"output_tokens"`
	Factor float64  `toml:"factor"`
	Sets   []string `toml:"sets"` // over the default experiment
}

// longPrompts measures for each length and system the unloaded time to the first token,
// what it is made of, and the goodput.
func (l *Studies) longPrompts(e *experiments.Experiment) error {
	var spec longSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	columns := []string{"system", "tokens", "ttft_s", "goodput", "low", "high", "limited_by",
		"ttft_limit_s", "d2h_share", "dram_gib"}
	t := run.NewTable(append(columns, longPhases...)...)
	for _, tokens := range spec.Tokens {
		if err := l.longPromptsOf(&spec, tokens, t); err != nil {
			return fmt.Errorf("%d tokens: %w", tokens, err)
		}
	}
	return l.write(e, t)
}

// longPhases are the phases of a prompt, in the words of a summary.
var longPhases = []string{"linears", "prefill_attention", "prefill_index", "load_stall",
	"save_stall", "host", "other"}

func (l *Studies) longPromptsOf(spec *longSpec, tokens int, t *run.Table) error {
	sets := slices.Concat(spec.Sets, []string{
		fmt.Sprintf("workload.prompt_lengths=fixed(%d)", tokens),
		fmt.Sprintf("workload.output_lengths=fixed(%d)", spec.Output),
	}, l.Sets)
	rarely := fmt.Sprintf("workload.rate=%g", 1/float64(tokens))
	first, err := config.LoadSweep("default", append(sets, rarely), nil)
	if err != nil {
		return err
	}
	candidates, err := capacity.Candidates(first)
	if err != nil {
		return err
	}
	alone := map[string]*sim.Summary{}
	for i := range candidates {
		p := candidates[i].Point
		p.Seed, p.Workload.Rate, p.Workload.Requests = 1, 1/float64(tokens), 1
		p.Workload.OutputScale = 1 / float64(spec.Output) // the first token alone
		l.alter(&p)
		sum, err := l.Run(l.ctx, p, run.Sink{Requests: io.Discard})
		if err != nil {
			return err
		}
		alone[p.System.Name] = &sum
	}
	// A search needs a level and a rate to load; each candidate has its own below.
	search, err := config.LoadSweep("default", append(sets, "slo.ttft_s=1", "workload.rate=1"), nil)
	if err != nil {
		return err
	}
	search.Alter = l.alter
	if candidates, err = capacity.Candidates(search); err != nil {
		return err
	}
	limit := map[string]float64{}
	for i := range candidates {
		c := &candidates[i]
		if ttft := alone[c.Point.System.Name].TTFT.Mean; ttft > 0 {
			c.Point.SLO.TTFTS, c.Start = spec.Factor*ttft, 0.5/ttft
			limit[c.Point.System.Name] = c.Point.SLO.TTFTS
		}
	}
	l.planned(capacity.GuessRuns(&search.Goodput, candidates...))
	found, err := l.search(&search.Goodput, candidates)
	if err != nil {
		return err
	}
	for i := range found {
		addLong(t, &found[i], alone[found[i].System], tokens, limit[found[i].System])
	}
	return nil
}

// addLong adds the row of a system: nothing but its name where it refuses the prompt.
func addLong(t *run.Table, g *capacity.Goodput, alone *sim.Summary, tokens int, limit float64) {
	low, high := g.Interval()
	all, named, phases := 0.0, 0.0, []float64{}
	// in one order: sums of floats depend on it
	for _, name := range slices.Sorted(maps.Keys(alone.PhaseS)) {
		all += alone.PhaseS[name]
	}
	for _, name := range longPhases[:len(longPhases)-1] {
		phases, named = append(phases, alone.PhaseS[name]), named+alone.PhaseS[name]
	}
	phases = append(phases, all-named)
	link, dram := 0.0, 0.0
	if alone.Completed > 0 {
		link = float64(alone.D2HBytes) / 25e9 / alone.TTFT.Mean
		dram = float64(alone.D2HBytes) / (1 << 30)
	}
	cells := []any{g.System, tokens, alone.TTFT.Mean, g.Goodput, low, high,
		strings.ReplaceAll(g.LimitedBy, ",", ";"), limit, link, dram}
	for _, s := range phases {
		cells = append(cells, s)
	}
	t.Add(cells...)
}
