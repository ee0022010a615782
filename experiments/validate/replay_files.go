package validate

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Files that only the result folder of a Replay has.
const (
	replayTrace = "trace.csv"
	compareCSV  = "compare.csv"
	compareJSON = "compare.json"
	replayJSON  = "replay.json"
)

// replayFile is replay.json.
type replayFile struct {
	*ReplayReport
	Compared []int `json:"compared"` // requests of each figure of compare.json
}

// ReadReplay reads the report of a result folder, without the configuration and single requests.
func ReadReplay(dir string) (*ReplayReport, error) {
	rest := replayFile{ReplayReport: &ReplayReport{}}
	var runs []metrics.Summary
	for _, f := range []struct {
		name string
		into any
	}{
		{compareJSON, &rest.Comparisons}, {run.SummaryFile, &runs}, {replayJSON, &rest},
	} {
		if err := files.ReadJSON(filepath.Join(dir, f.name), f.into); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no %s, so no comparison of this version was finished here; the "+
				"same command with --force makes it", dir, f.name)
		} else if err != nil {
			return nil, err
		}
	}
	r := rest.ReplayReport
	if len(runs) != 1 || len(r.Comparisons) == 0 || len(r.Comparisons) != len(rest.Compared) {
		return nil, fmt.Errorf("%s: damaged: it has %d runs, and %s has other figures than %s", dir,
			len(runs), replayJSON, compareJSON)
	}
	r.Summary = runs[0]
	for i := range r.Comparisons {
		r.Comparisons[i].Requests = rest.Compared[i]
	}
	return r, nil
}

// write writes the files of the comparison.
func (r *ReplayReport) write(folder *run.Folder, requests []byte) error {
	config, err := r.Config.TOML()
	if err != nil {
		return err
	}
	rest := replayFile{ReplayReport: r}
	for _, c := range r.Comparisons {
		rest.Compared = append(rest.Compared, c.Requests)
	}
	all := []run.File{{Name: replayTrace, Text: requests}, {Name: run.ConfigFile, Text: config},
		{Name: run.RequestsCSV, Text: r.requestsTable()}, {Name: compareCSV, Text: r.comparisonsTable()}}
	for _, f := range []struct {
		name string
		of   any
	}{{run.SummaryFile, []metrics.Summary{r.Summary}}, {compareJSON, r.Comparisons}, {replayJSON,
		rest}} {
		text, err := run.Marshal(f.of)
		if err != nil {
			return err
		}
		all = append(all, run.File{Name: f.name, Text: text})
	}
	r.Files, err = folder.Write(all...)
	return err
}

// requestsTable returns a row for each compared request. A request with one token has no TPOT.
func (r *ReplayReport) requestsTable() []byte {
	t := run.NewTable("id", "stage", "arrival_s", "prompt_tokens", "output_tokens", "measured_ttft_s",
		"simulated_ttft_s",
		"measured_tpot_s", "simulated_tpot_s", "measured_e2e_s", "simulated_e2e_s")
	for i := range r.Requests {
		q := &r.Requests[i]
		m, s := &q.Measured, &q.Simulated
		t.Add(q.ID, q.Stage, run.Seconds(m.At), m.Prompt, m.Output,
			nanos(m.TTFT), nanos(s.TTFT), nanos(m.TPOT()), nanos(s.TPOT()), nanos(m.E2E), nanos(s.E2E))
	}
	return t.Bytes()
}

// nanos formats seconds to the nanosecond; "" for NaN.
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
