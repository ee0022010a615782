package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/traces"
)

// The built-in experiments that simulate runs, the default one first, are fitted to
// one model on the built-in mix: their output scale, limit of prompts and rates mean
// nothing for another. Where a configuration over them brings its own trace or model
// and leaves such a key unset, the key is neutral instead:
//
//	a model, or an axis of models
//	             workload.output_scale = 1
//	             system.max_prompt_tokens = 0, the model's own maximum
//	a trace      the same, and
//	             workload.requests = 0, all of it
//	             workload.datasets, all of LongBench's
//	             workload.arrivals = "trace" where it has times and no rate is set

// neutral puts neutral values in the place of fitted ones.
func (l *loader) neutral() error {
	own := l.cfg.Workload.Trace != traces.BuiltIn
	if !own && l.cfg.Model == l.fitted && !l.models {
		return nil
	}
	w := &l.cfg.Workload
	if !l.chosen["workload.output_scale"] {
		w.OutputScale = 1
	}
	if !l.chosen["system.max_prompt_tokens"] {
		delete(l.common, "max_prompt_tokens")
	}
	if !own {
		return nil
	}
	if !l.chosen["workload.requests"] {
		w.Requests = 0
	}
	if !l.chosen["workload.datasets"] {
		w.Datasets = traces.AllSets()
	}
	return l.ownArrivals()
}

// ownArrivals has the requests of a trace arrive at its own times, or at a rate
// that is somebody's choice. A search begins at any rate.
func (l *loader) ownArrivals() error {
	w := &l.cfg.Workload
	if w.Trace == "" || l.chosen["workload.rate"] || l.cfg.ReplaysTimes() || l.search {
		return nil
	}
	timed, err := w.Timed()
	if err != nil {
		return nil // tryTrace finds it again, once the keys are known to be right
	}
	byItself := !l.chosen["workload.arrivals"]
	if timed && byItself {
		w.Arrivals = traces.ArrivalsTrace
		return nil
	}
	reason := fmt.Sprintf("not set, and %s has no arrival times of its own; set it to requests/s", w.Trace)
	if timed {
		reason = fmt.Sprintf("not set, and workload.arrivals = %q needs one, in requests/s; without both keys requests arrive at the times of %s", w.Arrivals, w.Trace)
	}
	return &KeyError{Where: l.origin["workload.trace"], Key: "workload.rate", Reason: reason}
}
