package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// Files that only the result folder of a Replay has.
const (
	replayTrace = "trace.csv"
	compareCSV  = "compare.csv"
	compareJSON = "compare.json"
	replayJSON  = "replay.json"
)

// open locks the result folder, which is new or holds an earlier comparison of the same record with
// the same settings.
func (r *Replay) open(c *config.Config) (*os.File, error) {
	if err := checkReplayMaker(r.Dir); err != nil {
		return nil, err
	}
	lock, err := run.LockDir(r.Dir)
	if err != nil || r.Replace {
		return lock, err
	}
	if err := r.continues(c); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// checkReplayMaker refuses a folder whose results are not a comparison.
func checkReplayMaker(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, compareCSV)); err == nil {
		return nil
	}
	for _, name := range []string{run.ConfigFile, run.SummaryFile, replayTrace} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s: holds %s, but not from compare; choose another folder", dir, name)
		}
	}
	return nil
}

// continues refuses results of another record, or with other settings.
func (r *Replay) continues(c *config.Config) error {
	kept, err := files.ReadResult(filepath.Join(r.Dir, run.ConfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var trace bytes.Buffer
	text, e := r.settings(c)
	if err := errors.Join(err, e, r.Record.WriteTrace(&trace)); err != nil {
		return err
	}
	keptTrace, err := files.ReadResult(filepath.Join(r.Dir, replayTrace))
	switch {
	case err != nil:
		return err
	case !bytes.Equal(keptTrace, trace.Bytes()):
		return fmt.Errorf("%s: holds the comparison of another record: %w", r.Dir, run.ErrTaken)
	case r.lessFound(kept) != r.lessFound(text):
		return fmt.Errorf("%s: holds the comparison with other settings: %w", r.Dir, run.ErrTaken)
	}
	return nil
}

// settings returns the configuration, preceded by the settings of the comparison that are not keys.
func (r *Replay) settings(c *config.Config) ([]byte, error) {
	text, err := c.TOML()
	if err != nil {
		return nil, err
	}
	head := ""
	if r.Skip > 0 {
		head += fmt.Sprintf("# compare --skip %g\n", r.Skip)
	}
	if r.PrefixHit != PrefixAuto {
		head += fmt.Sprintf("# compare --prefix-hit %g\n", r.PrefixHit)
	}
	return append([]byte(head), text...), nil
}

// lessFound returns a configuration without the keys that the comparison determines.
func (r *Replay) lessFound(text []byte) string {
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if r.PrefixHit != PrefixAuto || !strings.HasPrefix(line, "prefix_hit = ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// replayFile is replay.json.
type replayFile struct {
	*ReplayReport
	Compared []int `json:"compared"` // requests of each figure of compare.json
}

// ReadReplay reads the report of a result folder, without the configuration and single requests.
func ReadReplay(dir string) (*ReplayReport, error) {
	rest := replayFile{ReplayReport: &ReplayReport{}}
	var runs []sim.Summary
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

// write writes all files except the trace.
func (r *ReplayReport) write(of *Replay) error {
	dir := of.Dir
	config, err := of.settings(r.Config)
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
	rest := replayFile{ReplayReport: r}
	for _, c := range r.Comparisons {
		rest.Compared = append(rest.Compared, c.Requests)
	}
	replayed, err := json.MarshalIndent(rest, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{
		{run.ConfigFile, config}, {run.SummaryFile, summary}, {run.RequestsCSV, r.requestsTable()},
		{compareCSV, r.comparisonsTable()}, {compareJSON, append(all, '\n')},
		{replayJSON, append(replayed, '\n')},
	} {
		path := filepath.Join(dir, f.name)
		err = errors.Join(err, run.WriteFile(path, f.text))
		r.Files = append(r.Files, path)
	}
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
