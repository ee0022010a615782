package whatif

import (
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Files of a what-if's folder.
const (
	ResultFile = "whatif.json"
	tableFile  = "whatif.csv"
)

// Files returns the files of the result:
//
//	config.toml   the resolved configuration
//	whatif.json   the whole result
//	whatif.csv    one row per value of a knob, cell of the heat map or answer of a threshold
func (r *Result) Files() ([]run.File, error) {
	resolved, err := config.TOML(r.config)
	if err != nil {
		return nil, err
	}
	text, err := run.Marshal(r)
	return []run.File{{Name: run.ConfigFile, Text: resolved}, {Name: ResultFile, Text: text},
		{Name: tableFile, Text: r.table()}}, err
}

// table lists the numbers of all parts. change is relative to the configuration.
func (r *Result) table() []byte {
	t := run.NewTable("case", "part", "knob", "setting", "knob_b", "setting_b", "metric", "value",
		"change", "change_low", "change_high", "against", "verdict")
	for _, c := range r.Cases {
		t.Add(c.Name, "base", "", "", "", "", r.Metric, c.Base.Value, 0.0, "", "", "", "")
		for _, k := range c.Knobs {
			for _, p := range k.Points {
				t.Add(c.Name, "knob", k.Knob, p.Setting, "", "", r.Metric, p.Value.Value, p.Change, p.Low,
					p.High, "", "")
			}
		}
		if h := c.Heat; h != nil {
			for i, row := range h.Cells {
				for j, v := range row {
					change := ""
					if v != nil {
						change = stats.Exact(relative(*v, c.Base.Value))
					}
					t.Add(c.Name, "heat", h.A, h.ValuesA[j], h.B, h.ValuesB[i], r.Metric, v, change, "",
						"", "", "")
				}
			}
		}
		for _, x := range c.Thresholds {
			for _, a := range x.Tried {
				t.Add(c.Name, x.Name, x.Knob, a.Setting, "", "", "", a.Value, "", "", "", a.Against,
					string(a.Verdict))
			}
		}
	}
	return t.Bytes()
}
