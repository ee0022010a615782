package validate

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
)

// Files of the result folder of a Replay that other runs do not have.
const (
	replayTrace = "trace.csv"
	compareCSV  = "compare.csv"
	compareJSON = "compare.json"
)

// write writes all but the trace.
func (r *ReplayReport) write(dir string) error {
	config, err := r.Config.TOML()
	if err != nil {
		return err
	}
	summary, err := run.Marshal([]sim.Summary{r.Summary})
	if err != nil {
		return err
	}
	all, err := json.MarshalIndent(r.Comparisons, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{
		{run.ConfigFile, config}, {run.SummaryFile, summary}, {run.RequestsCSV, r.requestsTable()},
		{compareCSV, r.comparisonsTable()}, {compareJSON, append(all, '\n')},
	} {
		path := filepath.Join(dir, f.name)
		err = errors.Join(err, run.WriteFile(path, f.text))
		r.Files = append(r.Files, path)
	}
	return err
}

// requestsTable has a row for each compared request. A request of one token has
// no TBT.
func (r *ReplayReport) requestsTable() []byte {
	t := run.NewTable("id", "stage", "arrival_s", "prompt_tokens", "output_tokens", "measured_ttft_s", "simulated_ttft_s",
		"measured_tbt_s", "simulated_tbt_s", "measured_e2e_s", "simulated_e2e_s")
	for i := range r.Requests {
		q := &r.Requests[i]
		m, s := &q.Measured, &q.Simulated
		t.Add(q.ID, q.Stage, run.Seconds(m.At), m.Prompt, m.Output,
			nanos(m.TTFT), nanos(s.TTFT), nanos(m.TBT()), nanos(s.TBT()), nanos(m.E2E), nanos(s.E2E))
	}
	return t.Bytes()
}

// nanos prints seconds to the nanosecond, and nothing for NaN.
func nanos(s float64) string {
	if math.IsNaN(s) {
		return ""
	}
	return strconv.FormatFloat(s, 'f', 9, 64)
}

func (r *ReplayReport) comparisonsTable() []byte {
	t := run.NewTable("run", "stage", "requests", "metric", "measured", "simulated", "error")
	for _, c := range r.Comparisons {
		t.Add(c.Run, c.Stage, c.Requests, c.Metric, c.Measured, c.Simulated, c.Error)
	}
	return t.Bytes()
}
