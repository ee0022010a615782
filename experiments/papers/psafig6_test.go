package papers

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/capacity"
)

// PSA's Fig. 6 is eight sets for each of three systems on one host (its §5.1), and
// what a set is served with, but for chunks, is the same under both SLOs.
func TestFig6OfPSA(t *testing.T) {
	type served struct {
		requests, budget int
		epsilon          float64
	}
	for _, model := range [][2]string{{"psa-fig6a", "psa-fig6b"}, {"psa-fig6c", "psa-fig6d"}} {
		var with [2]map[string]served
		for i, name := range model {
			with[i] = map[string]served{}
			systems := map[string][]string{} // by set
			candidates, err := capacity.Candidates(t.Context(), mustSweep(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range candidates {
				p := &c.Point
				if len(p.Workload.Datasets) != 1 || p.Workload.Requests < 200 || p.System.DRAMGiB > 128 {
					t.Errorf("%s, %s: %d requests of %v on %g GiB", name, c.Label(), p.Workload.Requests,
						p.Workload.Datasets, p.System.DRAMGiB)
				}
				set := p.Workload.Datasets[0]
				systems[set] = append(systems[set], p.System.Name)
				with[i][set] = served{p.Workload.Requests, p.System.Selection.BudgetTokens,
					p.System.Selection.Epsilon}
			}
			for set, names := range systems {
				if want := []string{"vllm", "vllm-sparse", "vllm-psa"}; !slices.Equal(names, want) {
					t.Errorf("%s serves %s by %q", name, set, names)
				}
			}
			if len(systems) != 8 {
				t.Errorf("%s has %d sets", name, len(systems))
			}
		}
		for set, strict := range with[0] {
			if relaxed := with[1][set]; strict != relaxed {
				t.Errorf("%s: %s serves %+v, %s %+v", set, model[0], strict, model[1], relaxed)
			}
		}
	}
}
