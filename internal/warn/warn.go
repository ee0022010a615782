// Package warn represents warnings about results as data. Code decides by a warning's Kind, never
// by its text, because a text may be reworded.
package warn

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Warning is a caveat of a result.
type Warning struct {
	Kind Kind
	// Subject is the subject of the warning, such as a key, a kernel or a file. It is empty if the
	// kind determines it.
	Subject string
	// Of names the results of an answer that it is about. It is empty for the whole answer, and in a
	// result itself.
	Of string
	// Numbers holds the text's numbers by name, so that a program need not parse the sentence.
	Numbers map[string]float64
	// Text is one sentence for a reader.
	Text string
}

// New returns a warning of a kind.
func New(kind Kind, format string, args ...any) Warning {
	return Warning{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// About returns the warning with its subject.
func (w Warning) About(subject string) Warning {
	w.Subject = subject
	return w
}

// With returns the warning with its numbers.
func (w Warning) With(numbers map[string]float64) Warning {
	w.Numbers = numbers
	return w
}

func (w Warning) String() string { return w.Text }

// Severity determines how a warning is shown.
type Severity string

const (
	// Serious warnings come first: without them figures are misread.
	Serious Severity = "serious"
	// Care is for warnings that limit the validity of figures.
	Care Severity = "care"
	// Note is for warnings that nearly every run has. They are shown on request.
	Note Severity = "note"
)

// Severity returns the severity of the warning's kind.
func (w Warning) Severity() Severity {
	switch {
	case slices.Contains(serious, w.Kind):
		return Serious
	case w.Kind == Extrapolated || w.Kind == HeadsSampled:
		return Note
	}
	return Care
}

// asJSON is a warning in a result file.
type asJSON struct {
	Kind     Kind               `json:"kind"`
	Severity Severity           `json:"severity"`
	Subject  string             `json:"subject,omitempty"`
	Of       string             `json:"of,omitempty"`
	Numbers  map[string]float64 `json:"numbers,omitempty"`
	Text     string             `json:"text"`
}

// MarshalJSON adds the severity.
func (w Warning) MarshalJSON() ([]byte, error) {
	return json.Marshal(asJSON{w.Kind, w.Severity(), w.Subject, w.Of, w.Numbers, w.Text})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (w *Warning) UnmarshalJSON(text []byte) error {
	var v asJSON
	if err := json.Unmarshal(text, &v); err != nil {
		return errors.New("a warning: want an object with kind and text, as this version writes")
	}
	*w = Warning{v.Kind, v.Subject, v.Of, v.Numbers, v.Text}
	return nil
}

// Has reports whether one of the warnings has one of the kinds.
func Has(all []Warning, kinds ...Kind) bool {
	return slices.ContainsFunc(all, func(w Warning) bool { return slices.Contains(kinds, w.Kind) })
}

// Texts returns the texts of warnings, in order.
func Texts(all []Warning) []string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].Text
	}
	return texts
}

// Rank orders kinds: the serious ones by gravity, then all others.
func (k Kind) Rank() int {
	if i := slices.Index(serious, k); i >= 0 {
		return i
	}
	return len(serious)
}

// NotesTitle returns the number of notes as a title.
func NotesTitle(n int) string {
	if n == 1 {
		return "1 note on extrapolation and sampling"
	}
	return fmt.Sprintf("%d notes on extrapolation and sampling", n)
}

// Kind is the topic of a warning.
type Kind string

// Kinds of warnings of a run.
const (
	NoneFinished  Kind = "none_finished"  // no request finished
	EndedEarly    Kind = "ended_early"    // an interrupt or an error ended the run
	Rejected      Kind = "rejected"       // requests were rejected
	ReplicasDown  Kind = "replicas_down"  // requests waited because no replica was up
	Preemptions   Kind = "preemptions"    // preemptions cost more than 5 % of the time
	UnstableQueue Kind = "unstable_queue" // waits grow without end
	WaitsGrow     Kind = "waits_grow"     // the same in a run too short to tell
	NearLimit     Kind = "near_limit"     // within 5 % of a limit of the servers
	Truncated     Kind = "truncated"      // prompts were truncated
	BeganAnew     Kind = "began_anew"     // requests began anew as replicas failed
	RowsLeft      Kind = "rows_left"      // rows of the trace were left out
	Damaged       Kind = "damaged"        // the trace, behind the requests that are read
	TraceEnded    Kind = "trace_ended"    // the trace ended before the run's requests
	NoBound       Kind = "no_bound"       // the service level has no bound
	FewRequests   Kind = "few_requests"   // too few for steady figures
	DerivedCard   Kind = "derived_card"   // kernels of another chip

	Window        Kind = "window"         // what is left out of the figures
	AccuracyProxy Kind = "accuracy_proxy" // no model ran
	Extrapolated  Kind = "extrapolated"   // the cost model was asked for sizes beyond those measured
	HeadsSampled  Kind = "heads_sampled"  // of all (layer, KV head) groups
	Assumed       Kind = "assumed"        // a kernel's price is derived or stands in for another
	ModelNote     Kind = "model"          // what of a model is not simulated
	Tokenizer     Kind = "tokenizer"      // lengths are estimated
	Uncached      Kind = "uncached"       // prompts that no cache can serve
	PrefixLoad    Kind = "prefix_load"    // how long prefixes load faster than they compute
	Index         Kind = "index"          // of a prefix cache, built anew
	Unused        Kind = "unused_key"     // a key without effect
	OtherCard     Kind = "other_card"     // a figure of [card] changes another card, too
	TraceContent  Kind = "trace"          // what of a trace is not served, or estimated
	Engines       Kind = "engines"        // systems run under different engines
	NoRequests    Kind = "no_requests"    // tables of requests are not kept
)

// Kinds of warnings of a search for goodput, or of a purchase.
const (
	FailsEverywhere Kind = "fails_everywhere" // no load tried meets the service level
	HoldsEverywhere Kind = "holds_everywhere" // each does
	NotMonotone     Kind = "not_monotone"     // a lower load fails where a higher one holds
	Interval        Kind = "interval"         // the estimate is outside it
	FewSeeds        Kind = "few_seeds"        // too few for an interval
	NoisyTail       Kind = "noisy_tail"       // too few requests for P99s
	ShortRun        Kind = "short_run"        // most of the run is its beginning and end
	Traffic         Kind = "traffic"          // prompts are refused or truncated
	Jump            Kind = "jump"             // a metric jumps just above the load
)

// Kinds of warnings of a validation or a calibration.
const (
	Flagged     Kind = "flagged"      // a fit has a flag
	GoalsMissed Kind = "goals_missed" // fewer runs than wanted meet every goal
)

// serious lists the kinds without which figures are misread, most serious first.
var serious = []Kind{Engines, NoneFinished, EndedEarly, Rejected,
	ReplicasDown, Preemptions, UnstableQueue, WaitsGrow, NearLimit, Truncated, BeganAnew, Damaged,
	RowsLeft, TraceEnded, NoBound, FewRequests, DerivedCard}
