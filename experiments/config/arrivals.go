package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/sparseserve/sparseserve/traces"
)

// implied sets keys of [workload] that follow from others: lengths imply a synthetic trace, clients
// a closed loop, sessions their own lengths, and stages the end of the run.
func (l *loader) implied() {
	w := &l.cfg.Workload
	if w.PromptLengths+w.OutputLengths != "" && !l.chosen("workload.trace") {
		w.Trace = traces.Synthetic
	}
	w.FillSessions(l.chosen)
	if l.most("workload.concurrency") > 0 && !l.chosen("workload.arrivals") {
		w.Arrivals = traces.ArrivalsClosed
	}
	if len(w.Stages) > 0 && !l.chosen("workload.requests") {
		w.Requests = 0
	}
}

// contradicted refuses keys of [workload] that its other keys make useless, unless they have the
// value that results write.
func (l *loader) contradicted() *KeyError {
	p := l.cfg.Point
	w, none := &p.Workload, traces.DefaultSpec()
	w.Rate, none.Rate = l.most("workload.rate"), 0
	w.Concurrency = int(l.most("workload.concurrency"))
	values := FieldsOf(&none)
	for i, f := range FieldsOf(w) {
		key, value := wholeKey("workload", f.Key), f.Value.Interface()
		if !l.chosen(key) || reflect.DeepEqual(value, values[i].Value.Interface()) ||
			l.search && f.Key == "rate" {
			continue
		}
		for _, name := range strings.Split(f.Tag.Get("used"), ",") {
			c, against := conditions[name], contradictions[name]
			if against != nil && !c.holds(&p, nil) {
				return &KeyError{Key: key, Value: Show(value), Reason: fmt.Sprintf(
					"is for %s, not used with %s; leave one out", c.words, against(w))}
			}
		}
	}
	if w.Sessions > 0 && (l.search || l.buys) {
		return &KeyError{Key: "sessions.count", Value: Show(w.Sessions), Reason: "a search for " +
			"what load a system sustains makes its runs as long as the load needs; set " +
			"workload.requests in its place"}
	}
	return nil
}

// ownArrivals makes the requests of a trace arrive at its recorded times, at the user's rate, or at
// rates to be chosen from the rates that the systems sustain. A search may begin at any rate.
func (l *loader) ownArrivals() error {
	w := &l.cfg.Workload
	if w.Trace == "" || !w.HasRate() || l.chosen("workload.rate") || l.search {
		return nil
	}
	has, err := w.Traits()
	if err != nil {
		return nil // inputs.trace finds it again, once the keys are known to be right
	}
	if has.Timed && !l.chosen("workload.arrivals") {
		w.Arrivals = traces.ArrivalsTrace
		return nil
	}
	if !l.buys && w.Trace != traces.Sessions {
		return nil
	}
	reason := fmt.Sprintf("not set, and %s has no arrival times of its own; set it to "+
		"requests/s, or workload.concurrency or workload.stages", w.Trace)
	if has.Timed {
		reason = fmt.Sprintf("not set, and workload.arrivals = %q needs one, in requests/s; without "+
			"both keys requests arrive at the times of %s", w.Arrivals, w.Trace)
	}
	err = &KeyError{Key: "workload.rate", With: []string{"workload.trace", "workload.prompt_lengths",
		"workload.output_lengths"},
		Reason: reason}
	return l.place(err)
}
