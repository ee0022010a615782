package experiments

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"sparseserve/hw"
	"sparseserve/sim"
	"sparseserve/sim/kv"
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
func (l *Lab) evictions(e *paperExperiment) error {
	var spec evictionSpec
	if err := decodePaper(e.Name, &spec); err != nil {
		return err
	}
	cfg, err := Load("", append(slices.Clone(spec.Run), l.Sets...))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Write([]string{"seed", "pool", "eviction", "kv_gib", "steps", "selected", "loaded", "hit_ratio"})
	x := NewSimulator()
	for _, seed := range spec.Seeds {
		cfg.Seeds = []uint64{seed}
		p := cfg.Points()[0]
		l.alter(&p)
		run, err := x.record(l, p)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		for _, row := range run.study(&spec) {
			w.Write(append([]string{strconv.FormatUint(seed, 10)}, row...))
		}
	}
	w.Flush()
	return l.writeTable(e, out.Bytes())
}

// recordedRun is what the decodes of a run selected.
type recordedRun struct {
	server sim.Config
	trace  *kv.Trace
}

// record makes a run for what its decodes select.
func (x *Simulator) record(l *Lab, p Point) (*recordedRun, error) {
	s, err := x.prepare(&p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	device, err := hw.NewDevice(s.gpu, &s.model, deviceOptions(&p.System))
	if err != nil {
		return nil, err
	}
	s.server.Device, s.server.Trace = device, &kv.Trace{}
	if _, err := s.serve(l.ctx, Sink{}, func(*sim.Metrics) []string { return nil }); err != nil {
		return nil, err
	}
	return &recordedRun{s.server, s.server.Trace}, nil
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

// study returns the rows of all policies, pools and sizes, without the seed.
func (r *recordedRun) study(spec *evictionSpec) [][]string {
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
			c.stats, c.err = r.trace.Optimum(bytes, perLayer)
			return
		}
		cfg := &r.server
		c.stats, c.err = r.trace.Replay(kv.Config{
			HBMBytes: bytes, Eviction: c.eviction, PerLayer: perLayer, Window: 1,
			Score: sim.BlockScores(&cfg.Spec, cfg.Geometry, r.trace.Sample.Groups, cfg.Library, cfg.Seed),
		})
	})
	var rows [][]string
	for _, c := range cells {
		if c.err != nil {
			continue // too small for what is in use at once
		}
		rows = append(rows, []string{c.pool, c.eviction, number(c.gib), strconv.Itoa(r.trace.Steps()),
			strconv.FormatInt(c.stats.Selected, 10), strconv.FormatInt(c.stats.Loaded, 10),
			number(1 - float64(c.stats.Loaded)/float64(c.stats.Selected))})
	}
	return rows
}
