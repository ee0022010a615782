package papers

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// evictionSpec is what the eviction study measures.
type evictionSpec struct {
	Run   []string  `toml:"run"` // key=value, over the default experiment
	Seeds []uint64  `toml:"seeds"`
	Pools []string  `toml:"pools"`  // system.pool
	KVGiB []float64 `toml:"kv_gib"` // HBM for blocks
}

// optimumName is Belady's optimum among the policies.
const optimumName = "belady"

// evictions records what the decodes of one run select and replays it, without
// time, under every eviction policy and Belady's optimum: the same accesses and
// capacity for all, which runs would not have. Sizes in which a policy cannot
// hold what is in use at once have no row.
func (l *Studies) evictions(e *experiments.Experiment) error {
	var spec evictionSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	cfg, err := config.Load("", append(slices.Clone(spec.Run), l.Sets...))
	if err != nil {
		return err
	}
	t := run.NewTable("seed", "pool", "eviction", "kv_gib", "steps", "selected", "loaded", "hit_ratio")
	x := run.NewSimulator()
	for _, seed := range spec.Seeds {
		cfg.Seeds = []uint64{seed}
		p := cfg.Points()[0]
		l.alter(&p)
		run, err := x.Record(l.ctx, p)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		spec.study(run, func(cells ...any) { t.Add(append([]any{seed}, cells...)...) })
	}
	return l.write(e, t)
}

// study adds the rows of all policies, pools and sizes, without the seed.
func (spec *evictionSpec) study(r *run.Recorded, add func(cells ...any)) {
	type cell struct {
		pool, eviction string
		gib            float64
		stats          kv.Stats
		err            error
	}
	var cells []cell
	for _, pool := range spec.Pools {
		for _, eviction := range append(kv.EvictionNames(), optimumName) {
			for _, gib := range spec.KVGiB {
				cells = append(cells, cell{pool: pool, eviction: eviction, gib: gib})
			}
		}
	}
	eachOnACore(len(cells), func(i int) {
		c := &cells[i]
		bytes, perLayer := int64(c.gib*(1<<30)), c.pool == "per-layer"
		if c.eviction == optimumName {
			c.stats, c.err = r.Trace.Optimum(bytes, perLayer)
			return
		}
		cfg := &r.Server
		c.stats, c.err = r.Trace.Replay(kv.Config{
			HBMBytes: bytes, Eviction: c.eviction, PerLayer: perLayer, Window: 1,
			Score: sim.BlockScores(&cfg.Spec, cfg.Geometry, r.Trace.Sample.Groups, cfg.Library, cfg.Seed),
		})
	})
	for _, c := range cells {
		if c.err != nil {
			continue // too small for what is in use at once
		}
		add(c.pool, c.eviction, c.gib, r.Trace.Steps(), c.stats.Selected, c.stats.Loaded,
			1-float64(c.stats.Loaded)/float64(c.stats.Selected))
	}
}

// eachOnACore calls f for 0 to n-1 on all cores.
func eachOnACore(n int, f func(i int)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { f(i); return nil })
	}
	_ = g.Wait() // no call fails
}
