package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// columns are a part of a table: their names and the cells of a record; nil cells are empty.
type columns[R any] struct {
	names string
	cells func(*R) []any
}

var (
	// prompt_tokens are the tokens served or rejected; trace_prompt_tokens are the tokens in the
	// trace.
	requestColumns = columns[metrics.Request]{"id,set,trace_prompt_tokens,prompt_tokens," +
		"output_tokens,arrival_s,scheduled_s,first_token_s,last_token_s,preemptions,rejected",
		func(r *metrics.Request) []any {
			cells := []any{r.ID, r.Set, r.Given, r.Prompt, r.Output, r.Arrival, nil, nil, nil, nil,
				r.Rejected}
			if r.Rejected == "" {
				copy(cells[6:], []any{r.Scheduled, r.FirstToken, r.LastToken, r.Preemptions})
			}
			return cells
		}}
	recallColumns = columns[metrics.Request]{"recall_proxy,accuracy_proxy",
		func(r *metrics.Request) []any {
			if r.Recall > 0 {
				return []any{r.Recall, AccuracyProxy(r.Missed2)}
			}
			return make([]any, 2) // it decoded no token
		}}
	// Prompt tokens cached when the request was first scheduled, and the part below HBM.
	hitColumns = columns[metrics.Request]{"hit_tokens,hit_dram_tokens,hit_ssd_tokens",
		func(r *metrics.Request) []any {
			if r.Rejected == "" {
				return []any{r.Hit, r.HitDRAM, r.HitSSD}
			}
			return make([]any, 3)
		}}
	// Replica at which a request ended, and number of restarts.
	retryColumns = columns[metrics.Request]{"replica,retries",
		func(r *metrics.Request) []any { return []any{r.Replica, r.Retries} }}

	stepColumns = columns[metrics.Step]{"step,start_s,elapsed_s,decodes,prefills," +
		"prefill_token_layers,waiting,blocks_selected,blocks_loaded,blocks_saved,linears_s," +
		"prefill_attention_s,dense_attention_s,sparse_attention_s,scoring_s,load_stall_s,save_stall_s," +
		"head_s,all_reduce_s,host_s,tokens,hbm_kv_bytes,dram_bytes,h2d_bytes,d2h_bytes,gpu_busy_s," +
		"h2d_busy_s,d2h_busy_s",
		func(r *metrics.Step) []any {
			p, b := &r.Timing.Phases, &r.Timing.Busy
			return []any{r.Index, r.Start, r.Timing.Elapsed, r.Decodes, r.Prefills, r.PrefillTokenLayers,
				r.Waiting, r.Selected, r.Loaded, r.Saved, p.Linears, p.PrefillAttention, p.DenseAttention,
				p.SparseAttention, p.Scoring, p.LoadStall, p.SaveStall, p.Head, p.AllReduce, p.Host, r.Tokens,
				r.HBMBytes, r.DRAMBytes, r.H2DBytes, r.D2HBytes, b.GPU, b.H2D, b.D2H}
		}}
	// Blocks prefetched for rounds that did not follow, and rounds over all layers.
	roundColumns = columns[metrics.Step]{"blocks_ahead,rounds",
		func(r *metrics.Step) []any { return []any{r.Ahead, r.Rounds} }}
	indexColumns = columns[metrics.Step]{"prefill_index_s",
		func(r *metrics.Step) []any { return []any{r.Timing.Phases.PrefillIndex} }}
	// Tokens of prompts whose first prefill began, prefix hits among them, bytes moved and evictions.
	prefixColumns = columns[metrics.Step]{"prefix_tokens,prefix_hit_tokens,prefix_hit_dram_tokens," +
		"prefix_hit_ssd_tokens,prefix_loaded_bytes,prefix_saved_bytes,prefix_ssd_read_bytes," +
		"prefix_ssd_written_bytes,prefix_blocks_evicted",
		func(r *metrics.Step) []any {
			u := &r.Prefix
			return []any{u.PromptTokens, u.HitTokens, u.DRAM.HitTokens, u.SSD.HitTokens,
				u.DRAM.LoadedBytes + u.SSD.LoadedBytes, u.DRAM.WrittenBytes, u.SSD.LoadedBytes,
				u.SSD.WrittenBytes, u.HBM.Evicted}
		}}
	replicaColumns = columns[metrics.Step]{"replica",
		func(r *metrics.Step) []any { return []any{r.Replica} }}
)

// Outputs writes a run's requests and steps as CSV. It implements sim.Recorder. The first error
// ends the run.
type Outputs struct {
	sink     Sink
	requests []columns[metrics.Request]
	steps    []columns[metrics.Step]
	err      error
}

// NewOutputs writes the headers of the tables that the sink wants.
func NewOutputs(sink Sink, system *sim.Spec, recall, fleet bool) *Outputs {
	f := &Outputs{sink: sink, requests: []columns[metrics.Request]{requestColumns},
		steps: []columns[metrics.Step]{stepColumns}}
	if recall {
		f.requests = append(f.requests, recallColumns)
	}
	if system.Progressive() {
		f.steps = append(f.steps, roundColumns)
	}
	if system.SparsePrefill() {
		f.steps = append(f.steps, indexColumns)
	}
	if system.CachesPrefixes() {
		f.requests, f.steps = append(f.requests, hitColumns), append(f.steps, prefixColumns)
	}
	if fleet {
		f.requests, f.steps = append(f.requests, retryColumns), append(f.steps, replicaColumns)
	}
	printRow(f, sink.Requests, f.requests, nil)
	printRow(f, sink.Steps, f.steps, nil)
	return f
}

// printRow writes a record; if record is nil, the names of the columns.
func printRow[R any](f *Outputs, w io.Writer, all []columns[R], record *R) {
	if w == nil || f.err != nil {
		return
	}
	var row []string
	for _, c := range all {
		if record == nil {
			row = append(row, c.names)
			continue
		}
		for _, v := range c.cells(record) {
			row = append(row, textCell(v))
		}
	}
	_, f.err = io.WriteString(w, strings.Join(row, ",")+"\n")
}

// textCell prints a cell of a table.
func textCell(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case des.Time:
		return Seconds(x)
	case string:
		return files.CSVCell(x)
	case float64:
		return fmt.Sprintf("%.5f", x)
	}
	return fmt.Sprint(v)
}

// Request implements sim.Recorder.
func (f *Outputs) Request(r *metrics.Request) error {
	if f.sink.Finished != nil {
		f.sink.Finished()
	}
	printRow(f, f.sink.Requests, f.requests, r)
	if f.sink.Watch != nil {
		f.sink.Watch.Ended(r)
	}
	return f.watched()
}

// watched returns the first error of writing or of the watcher.
func (f *Outputs) watched() error {
	if f.err == nil && f.sink.Watch != nil {
		f.err = f.sink.Watch.Enough()
	}
	return f.err
}

// Gap implements sim.Recorder.
func (f *Outputs) Gap(des.Time) {}

// Step implements sim.Recorder.
func (f *Outputs) Step(r *metrics.Step) error {
	if f.sink.Steps == nil {
		return f.watched()
	}
	printRow(f, f.sink.Steps, f.steps, r)
	return f.err
}

// Seconds prints a time exactly, to the nanosecond.
func Seconds(t des.Time) string { return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second) }
