package capacity

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// The plans whose cost is documented have as many candidates and requests as is said there.
func TestLargePlans(t *testing.T) {
	for file, presets := range map[string]int{"plan-dense": 1, "plan-sparse": 2} {
		s, err := config.LoadPlan(t.Context(), "../"+file+".toml", nil)
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Points(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		systems := map[string]bool{}
		for i := range points {
			p := &points[i]
			systems[p.System.Name] = true
			if p.Workload.Requests != 2000 {
				t.Errorf("%s: %s has %d requests, want 2000", file, p.Label(), p.Workload.Requests)
			}
		}
		if len(points) != 504 || len(systems) != presets {
			t.Errorf("%s: %d candidates of %d systems, want 504 of %d", file, len(points), len(systems),
				presets)
		}
	}
}
