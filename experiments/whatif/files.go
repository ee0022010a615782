package whatif

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Files of a what-if's folder.
const (
	ResultFile = "whatif.json"
	tableFile  = "whatif.csv"
)

// Write writes what was found:
//
//	config.toml   the resolved configuration
//	whatif.json   all of it
//	whatif.csv    one row a value of a knob, a cell of the heat map or an answer of a threshold
//
// It returns the names of the files.
func Write(dir string, r *Result) ([]string, error) {
	config, err := r.config.TOML()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := run.ClearLeft(dir, run.ConfigFile, ResultFile, tableFile); err != nil {
		return nil, err
	}
	var files []string
	for _, f := range []struct {
		name string
		text []byte
	}{{run.ConfigFile, config}, {ResultFile, append(text, '\n')}, {tableFile, r.table()}} {
		path := filepath.Join(dir, f.name)
		if err := run.WriteFile(path, f.text); err != nil {
			return files, run.KeptWhenFull(err)
		}
		files = append(files, path)
	}
	return files, nil
}

// table has the numbers of all parts; change is relative to the configuration.
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
						change = run.Number(relative(*v, c.Base.Value))
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
