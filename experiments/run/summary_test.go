package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// columnOf is a column of the table of these summaries; nil where there is none of that name.
func columnOf(t *testing.T, name string, sums ...sim.Summary) []string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(tabulate(sums).Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, title := range rows[0] {
		if title == name {
			var cells []string
			for _, row := range rows[1:] {
				cells = append(cells, row[i])
			}
			return cells
		}
	}
	return nil
}

// Of a run that ended early it is not known whether it keeps the service level.
func TestTableOfInterruptedRuns(t *testing.T) {
	early := sim.Summary{Interrupted: "interrupted"}
	if text, err := Marshal([]sim.Summary{early}); err != nil ||
		bytes.Contains(text, []byte("slo_met")) {
		t.Errorf("%s, %v", text, err)
	}
	var before sim.Summary // files of earlier versions have false
	if err := json.Unmarshal([]byte(`{"slo_met": false, "interrupted": "interrupted"}`),
		&before); err != nil {
		t.Fatal(err)
	}
	got := columnOf(t, "slo_met", sim.Summary{SLOMet: new(true)}, early, before,
		sim.Summary{SLOMet: new(false)})
	if want := []string{"true", "", "", "false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The table has the share of prompts in the prefix cache where a run has one.
func TestTableOfPrefixHits(t *testing.T) {
	off, on := sim.Summary{}, sim.Summary{PrefixCache: &sim.PrefixStats{HitShare: 0.625}}
	if got := columnOf(t, "prefix_hit_share", off, on); !slices.Equal(got, []string{"", "0.625"}) {
		t.Errorf("%q", got)
	}
	if got := columnOf(t, "prefix_hit_share", off); got != nil {
		t.Errorf("%q without a cache", got)
	}
}
