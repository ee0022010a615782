package whatif

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// subject is a server of a variant of the configuration, over all seeds.
type subject struct {
	candidate capacity.Candidate // without rate, where a search finds the metric
	points    []config.Point     // one a seed, where runs have it
	hash      string             // the same for what is configured alike
}

// point returns the configuration of the subject.
func (s *subject) point() *config.Point {
	if len(s.points) > 0 {
		return &s.points[0]
	}
	return &s.candidate.Point
}

// seeds returns the seeds, which are the same for every variant.
func (s *subject) seeds() []uint64 {
	if len(s.points) == 0 {
		return s.candidate.Seeds
	}
	var seeds []uint64
	for i := range s.points {
		seeds = append(seeds, s.points[i].Seed)
	}
	return seeds
}

// Value is the metric of a subject.
type Value struct {
	Value float64 `json:"value"`
	// in the order of the seeds; empty for a coarse search
	Seeds     []float64      `json:"seed_values"`
	LimitedBy string         `json:"limited_by,omitempty"` // of goodput: what fails above
	Warnings  []warn.Warning `json:"warnings"`

	spans []span // in the order of the seeds
	none  bool   // no request was served, so there is none
}

// Evaluator finds metrics of subjects. Every run goes through the store, so no run is made twice.
type Evaluator struct {
	Store   *run.Store
	Run     run.Runner
	Workers int // runs at a time; 0 = one a core
	// Planned and Finished count runs for a progress bar. Goroutines call them concurrently; they may
	// be nil.
	Planned  func(runs int)
	Finished func()

	hashes *config.Hasher
	values map[string]Value             // by metric and hash
	sums   map[string][]metrics.Summary // by hash
	notes  []string
}

// subjects lists the servers of the one variant of a sweep.
func (e *Evaluator) subjects(s *config.Sweep, search bool) ([]subject, error) {
	if e.hashes == nil {
		e.hashes, e.values, e.sums = config.NewHasher(), map[string]Value{},
			map[string][]metrics.Summary{}
	}
	var all []subject
	if search {
		candidates, err := capacity.Candidates(s)
		for _, c := range candidates {
			all = append(all, subject{candidate: c})
		}
		if err != nil {
			return nil, err
		}
	} else {
		points, err := s.Points()
		if err != nil {
			return nil, err
		}
		all = bySeeds(points, s.SeedsGiven)
	}
	for i := range all {
		p := *all[i].point()
		p.Seed, p.Name = 0, ""
		hash, err := e.hashes.Hash(&p)
		if err != nil {
			return nil, err
		}
		all[i].hash = hash
	}
	return all, nil
}

// defaultSeeds are used if the configuration sets no seeds. They are enough for an interval.
var defaultSeeds = []uint64{1, 2, 3}

// bySeeds groups points that differ only in their seed.
func bySeeds(points []config.SweepPoint, given bool) []subject {
	var all []subject
	for _, p := range points {
		point := p.Point
		switch {
		case !given:
			one := subject{}
			for _, seed := range defaultSeeds {
				point.Seed = seed
				point.Name = config.PointName(&point)
				one.points = append(one.points, point)
			}
			all = append(all, one)
		case len(all) > 0 && sameButSeed(all[len(all)-1].points[0], point):
			last := &all[len(all)-1]
			last.points = append(last.points, point)
		default:
			all = append(all, subject{points: []config.Point{point}})
		}
	}
	return all
}

// sameButSeed compares neighbouring points of one expansion.
func sameButSeed(a, b config.Point) bool {
	a.Seed = b.Seed
	return config.PointName(&a) == config.PointName(&b)
}

// evaluate finds a metric of subjects. Subjects with equal configurations are evaluated once.
func (e *Evaluator) evaluate(ctx context.Context, m *Metric, spec config.GoodputSearch,
	all []subject) ([]Value, error) {
	if !m.Search() {
		return e.measured(ctx, m, all)
	}
	var missing []capacity.Candidate
	var hashes []string
	for i := range all {
		hash := all[i].hash
		if _, ok := e.values[hash]; !ok && !slices.Contains(hashes, hash) {
			missing, hashes = append(missing, all[i].candidate), append(hashes, hash)
		}
	}
	e.planned(capacity.GuessRuns(&spec, missing...))
	planner := capacity.Planner{Store: e.Store, Run: e.Run, Workers: e.Workers, Planned: e.Planned,
		Finished: e.Finished}
	found, notes, err := planner.Do(ctx, spec, missing)
	e.notes = append(e.notes, notes...)
	if err != nil {
		return nil, err
	}
	for i := range found {
		g := &found[i]
		v := Value{Value: g.Goodput, Seeds: g.SeedGoodputs, LimitedBy: g.LimitedBy, Warnings: g.Warnings}
		for _, b := range g.SeedBrackets {
			v.spans = append(v.spans, span{b[0], b[1]})
		}
		if spec.Coarse {
			v.Seeds = []float64{} // brackets of seeds are not narrowed
		}
		e.values[hashes[i]] = v
	}
	values := make([]Value, len(all))
	for i := range all {
		values[i] = e.values[all[i].hash]
	}
	return values, nil
}

// measured finds a metric in the summaries of runs: the mean over seeds.
func (e *Evaluator) measured(ctx context.Context, m *Metric, all []subject) ([]Value, error) {
	sums, err := e.runs(ctx, all)
	if err != nil {
		return nil, err
	}
	values := make([]Value, len(all))
	for i := range all {
		v := Value{Warnings: []warn.Warning{}}
		for j := range sums[i] {
			s := &sums[i][j]
			v.none = v.none || s.Completed == 0
			v.Seeds = append(v.Seeds, m.of(s))
			v.spans = append(v.spans, span{m.of(s), m.of(s)})
			for _, w := range s.Warnings {
				if !slices.Contains(warn.Texts(v.Warnings), w.Text) {
					v.Warnings = append(v.Warnings, w)
				}
			}
		}
		v.Value = stat.Mean(v.Seeds, nil)
		values[i] = v
	}
	return values, nil
}

// runs makes the runs of subjects and returns their summaries, one per seed.
func (e *Evaluator) runs(ctx context.Context, all []subject) ([][]metrics.Summary, error) {
	var points []config.Point
	var of []string // hash of the subject of each point
	for i := range all {
		if _, ok := e.sums[all[i].hash]; ok || slices.Contains(of, all[i].hash) {
			continue
		}
		for _, p := range all[i].points {
			points, of = append(points, p), append(of, all[i].hash)
		}
	}
	missing, _, err := e.Store.Missing(points, config.Until(ctx))
	if err != nil {
		return nil, err
	}
	e.planned(len(missing))
	counted := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		sum, err := e.Run(ctx, p, sink)
		if e.Finished != nil {
			e.Finished()
		}
		return sum, err
	}
	results, notes, err := e.Store.Do(ctx, run.Grid{Run: counted, Workers: e.Workers}, points)
	e.notes = append(e.notes, notes...)
	if err != nil {
		return nil, err
	}
	for i := range results {
		e.sums[of[i]] = append(e.sums[of[i]], results[i].Summary)
	}
	sums := make([][]metrics.Summary, len(all))
	for i := range all {
		sums[i] = e.sums[all[i].hash]
	}
	return sums, nil
}

func (e *Evaluator) planned(runs int) {
	if e.Planned != nil {
		e.Planned(runs)
	}
}
