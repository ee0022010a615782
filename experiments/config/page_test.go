package config

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/units"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Files that are generated: for people, and for the command that lists keys.
const (
	page     = "../../docs/configuration.md"
	keysFile = "../../internal/cli/keys.csv"
)

// TestConfigurationPage keeps docs/configuration.md and keys.csv: every key of a configuration,
// from where it is declared. With -update it writes them.
func TestConfigurationPage(t *testing.T) {
	cfg, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pageWriter{t: t, cfg: cfg}
	p.all()
	var keys strings.Builder
	if err := csv.NewWriter(&keys).WriteAll(p.keys); err != nil {
		t.Fatal(err)
	}
	for path, got := range map[string]string{page: p.String(), keysFile: keys.String()} {
		if *testkit.Update {
			testkit.Rewrite(t, path, got)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(text) {
			t.Errorf(
				"%s is stale; go test ./experiments/config -run ConfigurationPage -update writes it anew",
				strings.TrimPrefix(path, "../../"))
		}
	}
}

// TestRangesOfThePage checks that what the page's ranges exclude is refused, by the key's name.
func TestRangesOfThePage(t *testing.T) {
	checked := 0
	for table, v := range map[string]any{
		"workload": &traces.Spec{}, "system": &sim.Spec{}, "scores": &score.Params{}, "slo": &SLO{},
		"metrics": &metrics.Cutoff{}, "fleet": &fleet.Spec{},
		"goodput": &GoodputSearch{}, "plan": &Plan{},
	} {
		for _, f := range FieldsOf(v) {
			tag := f.Tag.Get("range")
			if tag == "" {
				continue
			}
			for _, b := range units.Bounds(tag) {
				checked++
				x := map[string]float64{">=": b.Limit - 1, ">": b.Limit, "<=": 2 * b.Limit,
					"<": b.Limit}[b.Relation]
				key := wholeKey(table, f.Key)
				_, err := LoadSweep(t.Context(), "default", []string{fmt.Sprintf("%s=%g", key, x)})
				if err == nil || !strings.Contains(err.Error(), key) {
					t.Errorf("%s = %g is outside %q: %v", key, x, tag, err)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d bounds checked", checked)
	}
}
