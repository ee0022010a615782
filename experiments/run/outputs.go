package run

import (
	"fmt"
	"io"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Outputs writes a run's requests and steps as CSV. It implements sim.Recorder.
// The first error is kept and ends the run.
type Outputs struct {
	sink        Sink
	progressive bool // attention is: steps have two more columns
	sparse      bool // prefill is: steps have a column of the index
	recall      bool // with columns of the recall proxy
	fleet       bool // with columns of replicas
	prefixes    bool // are cached: with columns of hits
	err         error
}

const (
	// prompt_tokens was served, or rejected; trace_prompt_tokens came.
	requestsHeader = "id,set,trace_prompt_tokens,prompt_tokens,output_tokens,arrival_s,scheduled_s," +
		"first_token_s,last_token_s,preemptions,rejected"
	recallHeader = ",recall_proxy,accuracy_proxy"
	stepsHeader  = "step,start_s,elapsed_s,decodes,prefills,prefill_token_layers,waiting," +
		"blocks_selected,blocks_loaded,blocks_saved," +
		"linears_s,prefill_attention_s,dense_attention_s,sparse_attention_s,scoring_s," +
		"load_stall_s,save_stall_s,head_s,all_reduce_s,host_s," +
		"tokens,hbm_kv_bytes,dram_bytes,h2d_bytes,d2h_bytes,gpu_busy_s,h2d_busy_s,d2h_busy_s"
	// Blocks loaded for rounds that never came, and rounds over all layers.
	roundsHeader = ",blocks_ahead,rounds"
	indexHeader  = ",prefill_index_s"
	// That a request ended at; times that it began anew.
	// Prompt tokens that were cached when it was first scheduled, and of them those below HBM.
	prefixHeader = ",hit_tokens,hit_dram_tokens,hit_ssd_tokens"
	// Tokens of prompts whose first prefill began, hits among them, bytes moved and what was evicted.
	prefixStepHeader = ",prefix_tokens,prefix_hit_tokens,prefix_hit_dram_tokens," +
		"prefix_hit_ssd_tokens,prefix_loaded_bytes,prefix_saved_bytes,prefix_ssd_read_bytes," +
		"prefix_ssd_written_bytes,prefix_blocks_evicted"
	fleetHeader     = ",replica,retries"
	fleetStepHeader = ",replica"
)

// NewOutputs writes the headers of the tables that the sink wants.
func NewOutputs(sink Sink, system *sim.Spec, recall, fleet bool) *Outputs {
	f := &Outputs{sink: sink, progressive: system.Progressive(), sparse: system.SparsePrefill(),
		recall: recall, fleet: fleet, prefixes: system.CachesPrefixes()}
	header := requestsHeader
	if f.recall {
		header += recallHeader
	}
	if f.prefixes {
		header += prefixHeader
	}
	if f.fleet {
		header += fleetHeader
	}
	f.print(sink.Requests, "%s\n", header)
	header = stepsHeader
	if f.progressive {
		header += roundsHeader
	}
	if f.sparse {
		header += indexHeader
	}
	if f.prefixes {
		header += prefixStepHeader
	}
	if f.fleet {
		header += fleetStepHeader
	}
	f.print(sink.Steps, "%s\n", header)
	return f
}

func (f *Outputs) print(w io.Writer, format string, args ...any) {
	if w == nil || f.err != nil {
		return
	}
	_, f.err = fmt.Fprintf(w, format, args...)
}

// Request implements sim.Recorder.
func (f *Outputs) Request(r *sim.RequestRecord) error {
	if f.sink.Finished != nil {
		f.sink.Finished()
	}
	set := files.CSVCell(r.Set)
	if r.Rejected != "" {
		f.print(f.sink.Requests, "%d,%s,%d,%d,%d,%s,,,,,%s", r.ID, set, r.Given, r.Prompt, r.Output,
			Seconds(r.Arrival), files.CSVCell(r.Rejected))
	} else {
		f.print(f.sink.Requests, "%d,%s,%d,%d,%d,%s,%s,%s,%s,%d,", r.ID, set, r.Given, r.Prompt, r.Output,
			Seconds(r.Arrival), Seconds(r.Scheduled), Seconds(r.FirstToken), Seconds(r.LastToken),
			r.Preemptions)
	}
	switch {
	case !f.recall:
	case r.Recall > 0:
		f.print(f.sink.Requests, ",%.5f,%.5f", r.Recall, AccuracyProxy(r.Missed2))
	default: // it decoded no token
		f.print(f.sink.Requests, ",,")
	}
	switch {
	case !f.prefixes:
	case r.Rejected != "":
		f.print(f.sink.Requests, ",,,")
	default:
		f.print(f.sink.Requests, ",%d,%d,%d", r.Hit, r.HitDRAM, r.HitSSD)
	}
	if f.fleet {
		f.print(f.sink.Requests, ",%d,%d", r.Replica, r.Retries)
	}
	f.print(f.sink.Requests, "\n")
	if f.sink.Watch != nil {
		f.sink.Watch.Ended(r)
	}
	return f.watched()
}

// watched returns the first error, of writing or of the watcher.
func (f *Outputs) watched() error {
	if f.err == nil && f.sink.Watch != nil {
		f.err = f.sink.Watch.Enough()
	}
	return f.err
}

// Gap implements sim.Recorder.
func (f *Outputs) Gap(t des.Time) {
	if f.sink.Watch != nil {
		f.sink.Watch.Gap(t)
	}
}

// Step implements sim.Recorder.
func (f *Outputs) Step(r *sim.StepRecord) error {
	if f.sink.Steps == nil {
		return f.watched()
	}
	p := &r.Timing.Phases
	f.print(f.sink.Steps, "%d,%s,%s,%d,%d,%d,%d,%d,%d,%d,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s",
		r.Index, Seconds(r.Start), Seconds(r.Timing.Elapsed), r.Decodes, r.Prefills,
		r.PrefillTokenLayers, r.Waiting,
		r.Selected, r.Loaded, r.Saved,
		Seconds(p.Linears), Seconds(p.PrefillAttention), Seconds(p.DenseAttention),
		Seconds(p.SparseAttention),
		Seconds(p.Scoring), Seconds(p.LoadStall), Seconds(p.SaveStall), Seconds(p.Head),
		Seconds(p.AllReduce), Seconds(p.Host))
	b := &r.Timing.Busy
	f.print(f.sink.Steps, ",%d,%d,%d,%d,%d,%s,%s,%s", r.Tokens, r.HBMBytes, r.DRAMBytes, r.H2DBytes,
		r.D2HBytes,
		Seconds(b.GPU), Seconds(b.H2D), Seconds(b.D2H))
	if f.progressive {
		f.print(f.sink.Steps, ",%d,%d", r.Ahead, r.Rounds)
	}
	if f.sparse {
		f.print(f.sink.Steps, ",%s", Seconds(p.PrefillIndex))
	}
	if u := &r.Prefix; f.prefixes {
		f.print(f.sink.Steps, ",%d,%d,%d,%d,%d,%d,%d,%d,%d", u.Asked, u.Hit, u.HitDRAM, u.HitSSD,
			u.Loaded, u.Saved, u.LoadedSSD, u.SavedSSD, u.Evicted)
	}
	if f.fleet {
		f.print(f.sink.Steps, ",%d", r.Replica)
	}
	f.print(f.sink.Steps, "\n")
	return f.err
}

// Seconds prints a time exactly, to the nanosecond.
func Seconds(t des.Time) string { return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second) }
