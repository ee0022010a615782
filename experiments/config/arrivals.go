package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/traces"
)

// implied sets what other keys of [workload] say by themselves: lengths make a synthetic trace,
// clients a closed loop, sessions have lengths of their own, and the run ends with its stages.
func (l *loader) implied() {
	w := &l.cfg.Workload
	if w.PromptLengths+w.OutputLengths != "" && !l.chosen["workload.trace"] {
		w.Trace = traces.Synthetic
	}
	w.FillSessions(func(key string) bool { return l.chosen["workload."+key] })
	if slices.Max(append(l.cfg.Clients, 0)) > 0 && !l.chosen["workload.arrivals"] {
		w.Arrivals = traces.ArrivalsClosed
	}
	if len(w.Stages) > 0 && !l.chosen["workload.requests"] {
		w.Requests = 0
	}
}

// unused refuses keys of [workload] that its other keys make useless, unless they have the value
// that results write there.
func (l *loader) unused() *KeyError {
	w := &l.cfg.Workload
	const drawn = "arrivals poisson, gamma and fixed"
	closed, recorded := w.Arrivals == traces.ArrivalsClosed, w.Arrivals == traces.ArrivalsTrace
	gamma := w.Arrivals == traces.ArrivalsGamma
	arrivals := fmt.Sprintf("workload.arrivals = %q", w.Arrivals)
	if len(w.Stages) > 0 && !closed && !recorded {
		arrivals = "workload.stages, which have rates of their own"
	}
	trace := fmt.Sprintf("workload.trace = %q", w.Trace)
	sessions := w.Trace == traces.Sessions
	lengths := sessions || w.Trace == traces.Synthetic
	rate, clients := slices.Max(append(l.cfg.Rates, 0)), slices.Max(append(l.cfg.Clients, 0))
	for _, k := range []struct {
		key   string
		value any
		set   bool
		used  bool
		by    string // what it is for
		here  string // what makes it useless
	}{
		{"workload.rate", rate, rate != 0, w.HasRate() || l.search, drawn, arrivals},
		{"workload.stages", w.Stages, len(w.Stages) > 0, !closed && !recorded, drawn, arrivals},
		{"workload.speed", w.Speed, w.Speed != 1, recorded, "arrivals trace", arrivals},
		{"workload.burstiness", w.Burstiness, w.Burstiness != 1, gamma, "arrivals gamma", arrivals},
		{"workload.concurrency", clients, clients != 0, closed, "arrivals closed", arrivals},
		{"workload.think_s", w.ThinkS, w.ThinkS != 0, closed || sessions || w.FromFile() && !recorded,
			"arrivals closed", arrivals},
		{"workload.prompt_lengths", w.PromptLengths, w.PromptLengths != "", lengths,
			"traces synthetic and sessions", trace},
		{"workload.output_lengths", w.OutputLengths, w.OutputLengths != "", lengths,
			"traces synthetic and sessions", trace},
		{"workload.sessions", w.Sessions, w.Sessions != 0, sessions, "trace sessions", trace},
		{"workload.turns", w.Turns, w.Turns != "", sessions, "trace sessions", trace},
		{"workload.system_prompts", w.SystemPrompts, w.SystemPrompts != 0, sessions, "trace sessions",
			trace},
		{"workload.system_lengths", w.SystemLengths, w.SystemLengths != "", sessions, "trace sessions",
			trace},
		{"workload.system_zipf", w.SystemZipf, w.SystemZipf != 0, sessions, "trace sessions", trace},
	} {
		if k.set && !k.used && l.chosen[k.key] {
			reason := fmt.Sprintf("is for %s, not used with %s; leave one out", k.by, k.here)
			return &KeyError{Key: k.key, Value: Show(k.value), Reason: reason}
		}
	}
	if w.Sessions > 0 && (l.search || l.buys) {
		return &KeyError{Key: "workload.sessions", Value: Show(w.Sessions), Reason: "a search for " +
			"what load a system sustains makes its runs as long as the load needs; set " +
			"workload.requests in its place"}
	}
	return nil
}

// ownArrivals has the requests of a trace arrive at its own times, or at a rate that is
// somebody's choice, or to be chosen from what the systems sustain. A search begins at any rate.
func (l *loader) ownArrivals() error {
	w := &l.cfg.Workload
	if w.Trace == "" || !w.HasRate() || l.chosen["workload.rate"] || l.search {
		return nil
	}
	timed, err := w.Timed()
	if err != nil {
		return nil // inputs.trace finds it again, once the keys are known to be right
	}
	if timed && !l.chosen["workload.arrivals"] {
		w.Arrivals = traces.ArrivalsTrace
		return nil
	}
	if !l.buys && w.Trace != traces.Sessions {
		return nil
	}
	reason := fmt.Sprintf("not set, and %s has no arrival times of its own; set it to "+
		"requests/s, or workload.concurrency or workload.stages", w.Trace)
	if timed {
		reason = fmt.Sprintf("not set, and workload.arrivals = %q needs one, in requests/s; without "+
			"both keys requests arrive at the times of %s", w.Arrivals, w.Trace)
	}
	err = &KeyError{Key: "workload.rate", With: []string{"trace", "prompt_lengths", "output_lengths"},
		Reason: reason}
	return l.place(err)
}
