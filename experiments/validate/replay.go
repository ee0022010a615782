package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces/records"
)

// Replay compares the record of a real server with a simulation of the same requests at their
// recorded times.
type Replay struct {
	Name   string // of the record
	File   string // of the record, as a reader knows it
	Dir    string // result folder
	Record *records.Record
	Config config.Point // of the server, from LoadServer
	// Skip excludes requests that arrived earlier, in seconds since the first, from every figure of
	// both sides. They are simulated all the same, because they load the server for the others.
	Skip float64
	// PrefixHit is the share of each prompt that hit the server's prefix cache, or PrefixAuto.
	PrefixHit float64
	Run       run.Runner
	Finished  func()   // called once for every simulated request; may be nil
	Inputs    []string // files that the comparison reads
	// Replace allows Dir to hold the comparison of another record, or with other settings.
	Replace bool

	store *run.Store // of the simulations
}

// ReplayReport is the comparison of a simulation with the record. Fields with a JSON name are in
// replay.json, the rest in other files of the folder.
type ReplayReport struct {
	Name     string          `json:"name"`
	File     string          `json:"file"`            // of the record, as a reader knows it
	Format   string          `json:"format"`          // of the record
	Notes    []string        `json:"notes,omitempty"` // of the record and its server
	Recorded int             `json:"requests"`        // of the record
	SpanS    float64         `json:"span_s"`          // from its first arrival to the last
	Engine   string          `json:"engine"`
	Changed  string          `json:"changed,omitempty"` // figures of the card (config.Changed)
	Failed   int             `json:"failed"`            // requests of the record, in neither side
	SkipS    float64         `json:"skip_s"`
	Skipped  int             `json:"skipped"`          // by SkipS
	Rejected int             `json:"rejected"`         // by the simulated server, so in neither side
	Prefix   *PrefixEstimate `json:"prefix,omitempty"` // nil where a share was given, or none can hit

	Config      *config.Point      `json:"-"` // with the record as its workload
	Summary     metrics.Summary    `json:"-"` // of the whole simulation, skipped requests included
	Stages      []LoadStage        `json:"-"` // of the compared requests; one of a steady load
	Requests    []Replayed         `json:"-"` // that are compared, in order of arrival
	Comparisons []RecordComparison `json:"-"`
	Files       []string           `json:"-"`
}

// notes returns the notes of the record, and why the system was chosen if the configuration names
// none.
func (r *Replay) notes() []string {
	notes, system := slices.Clone(r.Record.Notes), r.Config.System.Name
	switch {
	case !r.Config.ByRecord:
	case r.Record.Server() != "":
		notes = append(notes, fmt.Sprintf("%s is simulated because the log is one of its client's; "+
			"--set system.preset=NAME chooses another (sparseserve list systems).", system))
	default:
		notes = append(notes, fmt.Sprintf("%s is simulated because the log names no version of its "+
			"server; --set system.preset=NAME chooses another (sparseserve list systems).", system))
	}
	return notes
}

// Do simulates the record and writes the result folder, a run.Folder. It returns run.ErrTaken if
// the folder holds other results:
//
//	trace.csv      the record's requests, which the configuration replays
//	config.toml    the resolved configuration
//	summary.json   of the simulation
//	requests.csv   every compared request, measured and simulated
//	compare.csv    every figure, measured and simulated
//	compare.json   the same as --json prints it
//	replay.json    the rest of the report
func (r *Replay) Do(ctx context.Context) (report *ReplayReport, err error) {
	last := r.Record.Requests[len(r.Record.Requests)-1].At.Seconds()
	if r.Skip > last {
		return nil, fmt.Errorf("--skip %g: leaves out all %d requests; the last arrived at %.6g s",
			r.Skip, len(r.Record.Requests), last)
	}
	if r.Skip > 0 && r.Record.Figures != nil {
		return nil, fmt.Errorf("--skip %g: the record has aggregates over all requests alone: leave it "+
			"out", r.Skip)
	}
	identified := r.Record.Identified() && r.PrefixHit == PrefixAuto
	if s := &r.Config.System; s.CachesPrefixes() && !identified {
		return nil, &config.KeyError{Key: "prefix_cache.mode", Value: config.Show(s.PrefixCache.Mode),
			Reason: "the record has no column prompt_id or content, nor the texts of its prompts, " +
				"so it does not say what they have in common: leave this out; how much was cached is " +
				"estimated, or --prefix-hit SHARE says it"}
	}
	trace := filepath.Join(r.Dir, replayTrace)
	out := &ReplayReport{
		Name: r.Name, File: r.File, Format: r.Record.Format, Notes: r.notes(),
		Recorded: len(r.Record.Requests),
		SpanS:    last, Engine: r.Config.System.Engine,
		Changed: config.Changed(r.Config.Card), Failed: r.Record.Failed, SkipS: r.Skip,
		Config: r.Config.Replayed(trace, len(r.Record.Requests))}
	simulate := r.choosePrefix
	if identified {
		simulate = r.simulate
	} else if r.PrefixHit != PrefixAuto {
		out.Config.Workload.PrefixHit, simulate = r.PrefixHit, r.simulate
	}
	var requests bytes.Buffer
	if err := r.Record.WriteTrace(&requests); err != nil {
		return nil, err
	}
	question, err := r.question(out.Config, requests.String())
	if err != nil {
		return nil, err
	}
	folder, err := run.OpenFolder(r.Dir, run.ModelVersion, question, "", r.Replace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	r.store = folder.Store
	if err := run.WriteFile(trace, requests.Bytes()); err != nil {
		return nil, err
	}
	err = simulate(ctx, out)
	if err == nil { // a run near a limit, again with other step times
		err = r.made(ctx, out, run.Grid{Again: func(int) {}})
	}
	if err != nil {
		if !folder.Finished() {
			err = errors.Join(err, os.Remove(trace))
		}
		return nil, err
	}
	return out, out.write(folder, requests.Bytes())
}

// question returns the question of the comparison: the record, the configuration and the flags.
func (r *Replay) question(c *config.Point, requests string) (*run.Question, error) {
	text, err := c.TOML()
	q := &run.Question{Command: "compare", Name: r.Name, Text: string(text), Inputs: r.Inputs,
		Asked: []string{"requests " + run.DigestOf(requests)}}
	if r.Skip > 0 {
		q.Asked = append(q.Asked, fmt.Sprintf("--skip %g", r.Skip))
	}
	if r.PrefixHit != PrefixAuto {
		q.Asked = append(q.Asked, fmt.Sprintf("--prefix-hit %g", r.PrefixHit))
	}
	return q, err
}

// made has the one point of the configuration run, and takes its summary.
func (r *Replay) made(ctx context.Context, out *ReplayReport, grid run.Grid) error {
	grid.Run = r.Run
	results, err := r.store.Do(ctx, grid, []config.Point{*out.Config})
	if err == nil {
		out.Summary = results[0].Summary
		out.Summary.Name = r.Name
	}
	return err
}

// simulate runs the configuration, and compares.
func (r *Replay) simulate(ctx context.Context, out *ReplayReport) error {
	if err := r.made(ctx, out, run.Grid{Finished: r.Finished}); err != nil {
		return err
	}
	dir, _, err := r.store.Find(out.Config)
	if err != nil {
		return err
	}
	served, err := readServed(dir)
	if err != nil {
		return err
	}
	return r.pair(out, served)
}

// pair joins both sides of each request and compares them.
func (r *Replay) pair(out *ReplayReport, served []servedRequest) error {
	byID := map[int]*servedRequest{}
	for i := range served {
		byID[served[i].id] = &served[i]
	}
	var arrivals []float64
	for i, m := range r.Record.Requests {
		s, ok := byID[i+1]
		switch {
		case m.At.Seconds() < r.Skip:
			out.Skipped++
			continue
		case !ok:
			out.Rejected++
			continue
		}
		simulated := m
		simulated.TTFT, simulated.E2E = s.first-s.arrival, s.last-s.arrival
		out.Requests = append(out.Requests, Replayed{ID: i + 1, Measured: m, Simulated: simulated})
		arrivals = append(arrivals, m.At.Seconds())
	}
	if len(out.Requests) == 0 {
		return fmt.Errorf(
			"the simulated server rejected all %d requests; does %s on %s have room for them?", out.Rejected,
			out.Config.Model, out.Config.GPU)
	}
	out.Stages = loadStages(arrivals)
	out.Comparisons = compareReplayed(r.Name, AllStages, out.Requests)
	if r.Record.Figures != nil {
		out.Stages = nil
		out.Comparisons = compareAggregates(out.Comparisons, r.Record.Figures, &out.Summary)
	}
	for i := range out.Stages {
		s := &out.Stages[i]
		of := out.Requests[s.first:s.end]
		for j := range of {
			of[j].Stage = s.Label
		}
		if len(out.Stages) > 1 {
			out.Comparisons = append(out.Comparisons, compareReplayed(r.Name, s.Label, of)...)
		}
	}
	return nil
}
