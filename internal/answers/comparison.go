package answers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// comparison is a metric of a record, measured and simulated.
type comparison struct {
	Run       string   `json:"run"`
	Stage     string   `json:"stage"`
	Metric    string   `json:"metric"`
	Measured  float64  `json:"measured"`
	Simulated float64  `json:"simulated"`
	Error     *float64 `json:"error"` // relative; nil where nothing was measured
}

// readComparison makes the page of a record held against its simulation.
func readComparison(dir string) (*builder, error) {
	var all []comparison
	if err := readJSON(dir, "compare.json", &all); err != nil {
		return nil, err
	}
	var runs []sim.Summary
	if err := readJSON(dir, "summary.json", &runs); err != nil {
		return nil, err
	}
	if len(all) == 0 || len(runs) == 0 {
		return nil, fmt.Errorf("%s: nothing is compared", filepath.Join(dir, "compare.json"))
	}
	p := &builder{Doc: doc.Doc{Title: all[0].Run + ": measured and simulated"}}
	var warnings []warn.Said
	for i := range runs {
		for _, w := range runs[i].Warnings {
			warnings = append(warnings, warn.Said{Warning: w})
		}
	}
	p.warn(nil, warnings, len(runs))
	drawn, err := figures.ComparisonData(dir)
	if err != nil {
		return nil, err
	}
	p.addFigures(drawn)
	var stages []string
	for _, c := range all {
		if !slices.Contains(stages, c.Stage) {
			stages = append(stages, c.Stage)
		}
	}
	for _, stage := range stages {
		p.Tables = append(p.Tables, stageTable(all, stage))
	}
	if _, err := p.restOn([]string{dir}, nil); err != nil {
		return nil, err
	}
	p.addFile(filepath.Join(dir, "config.toml"), "config.toml")
	return p, nil
}

// metricName makes words of a metric's key.
var metricName = strings.NewReplacer("ttft_", "TTFT ", "tbt_", "TBT ", "e2e_", "end to end ", "_p",
	" P", "_tok_s", ", tokens/s", "_s", ", s", "_", " ")

func stageTable(all []comparison, stage string) doc.Table {
	t := doc.Table{Title: "Requests of " + stage,
		Columns: columns(1, "metric", "measured", "simulated",
			"error %"), Folded: stage != "all"}
	if stage == "all" {
		t.Title = "All requests"
	}
	for _, c := range all {
		if c.Stage != stage {
			continue
		}
		off := "-"
		if c.Error != nil {
			off = percent(*c.Error)
		}
		t.Rows = append(t.Rows, row(metricName.Replace(c.Metric), digits(c.Measured),
			digits(c.Simulated), off))
	}
	return t
}
