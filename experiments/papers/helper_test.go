package papers

import (
	"context"
	"testing"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

func mustLoad(t *testing.T, path string, sets ...string) []config.Point {
	t.Helper()
	c, err := config.Load(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSweep(t *testing.T, path string, sets ...string) *config.Sweep {
	t.Helper()
	s, err := config.LoadSweep(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPoints(t *testing.T, s *config.Sweep) []config.Point {
	t.Helper()
	points, err := s.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// queueing is a runner whose delay passes 2 s at a rate that system and seed
// set.
func queueing(_ context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
	threshold := 0.1 + float64(p.Seed)/100
	if p.System.Name == "sparseserve" {
		threshold *= 4
	}
	return metrics.Summary{Completed: p.Workload.Requests, TBT: metrics.Stats{P99: 0.1},
		QueueDelay:     metrics.Stats{Mean: 2 * p.Workload.Rate / threshold},
		ThroughputTokS: 100 * p.Workload.Rate}, nil
}

// readStudy decodes the file of a study.
func readStudy(t testing.TB, name string, into any) {
	t.Helper()
	e, ok := experiments.Named(name)
	if !ok {
		t.Fatalf("no experiment %s", name)
	}
	decode(name, e.Text, into)
}
