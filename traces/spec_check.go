package traces

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Validate returns an error for the first key with a value that is invalid beside the other keys.
// It does not check the ranges in the fields' tags, and reads no files.
func (s Spec) Validate() error {
	if s.Trace == "" {
		return fmt.Errorf("workload.trace = %q: name %q, %q, %q, or a file or folder", s.Trace,
			BuiltIn, Synthetic, Sessions)
	}
	checks := []error{
		s.checkDatasets(),
		oneOf("workload.arrivals", s.Arrivals, valuesOf("Arrivals")),
		oneOf("longbench.output", s.Output, valuesOf("Output")),
		s.checkStages(),
		s.checkClosed(),
		s.checkLengths(),
		s.checkSessions(),
	}
	if s.Tokenizer != "" {
		checks = append(checks, oneOf("workload.tokenizer", s.Tokenizer, valuesOf("Tokenizer")))
	}
	if s.Format != "" {
		checks = append(checks, oneOf("workload.format", s.Format, FormatNames()))
	}
	if s.Requests < 1 && !s.FromFile() && s.Sessions == 0 && len(s.Stages) == 0 {
		checks = append(checks, fmt.Errorf("workload.requests = %d: must be at least 1", s.Requests))
	}
	if what := generates[s.Trace]; what != "" {
		if s.Arrivals == ArrivalsTrace {
			checks = append(checks, fmt.Errorf("workload.arrivals = %q: %s has no times of its own; use "+
				"poisson, gamma, fixed or closed", s.Arrivals, what))
		}
		if s.Format != "" {
			checks = append(checks, fmt.Errorf("workload.format = %q: workload.trace = %q is %s, not a "+
				"file; leave format empty or write ./%s", s.Format, s.Trace, what, s.Trace))
		}
	}
	return cmp.Or(checks...)
}

// generates has the traces without a file, in words.
var generates = map[string]string{BuiltIn: "the built-in mix", Synthetic: "a synthetic trace",
	Sessions: "a made-up trace"}

// FromFile reports whether the lengths are read from a file.
func (s Spec) FromFile() bool { return generates[s.Trace] == "" }

// HasRate reports whether requests arrive at Rate.
func (s Spec) HasRate() bool {
	return s.Arrivals != ArrivalsTrace && s.Arrivals != ArrivalsClosed && len(s.Stages) == 0
}

func (s Spec) checkClosed() error {
	if s.Arrivals == ArrivalsClosed && s.Concurrency < 1 {
		return fmt.Errorf("workload.arrivals = %q: needs clients; set workload.concurrency to 1 or more",
			s.Arrivals)
	}
	return nil
}

// Keys of the distributions of a workload.
const (
	promptsKey = "workload.prompt_lengths"
	outputsKey = "workload.output_lengths"
	turnsKey   = "sessions.turns"
	systemKey  = "sessions.system_lengths"
)

// distributions parses the distributions that are given, by key.
func (s *Spec) distributions() (map[string]Lengths, error) {
	all := map[string]Lengths{}
	for _, l := range [][2]string{{promptsKey, s.PromptLengths}, {outputsKey, s.OutputLengths},
		{turnsKey, s.Turns}, {systemKey, s.SystemLengths}} {
		if l[1] == "" {
			continue
		}
		lengths, err := ParseLengths(l[0], l[1])
		if err != nil {
			return nil, err
		}
		all[l[0]] = lengths
	}
	return all, nil
}

// checkLengths rejects invalid distributions, and synthetic traces and sessions without them.
func (s Spec) checkLengths() error {
	all, err := s.distributions()
	if err != nil {
		return err
	}
	switch s.Trace {
	case Sessions:
		for _, key := range []string{promptsKey, outputsKey, turnsKey, systemKey} {
			if _, ok := all[key]; !ok && (key != systemKey || s.SystemPrompts > 0) {
				return fmt.Errorf("%s = \"\": of sessions it must be a distribution, as in \"fixed(10)\"", key)
			}
		}
	case Synthetic:
		const advice = `as in "lognormal(8192, 0.5)" and "fixed(200)"`
		switch {
		case s.PromptLengths+s.OutputLengths == "":
			return fmt.Errorf("workload.trace = %q: needs lengths; set %s and %s, %s", s.Trace, promptsKey,
				outputsKey, advice)
		case s.OutputLengths == "":
			return fmt.Errorf("%s = %q: needs %s too, as in \"fixed(200)\"", promptsKey, s.PromptLengths,
				outputsKey)
		case s.PromptLengths == "":
			return fmt.Errorf("%s = %q: needs %s too, as in \"lognormal(8192, 0.5)\"", outputsKey,
				s.OutputLengths, promptsKey)
		}
	}
	return nil
}

func (s Spec) checkDatasets() error {
	if len(s.Datasets) == 0 {
		return fmt.Errorf("longbench.datasets = []: name at least one LongBench set")
	}
	known := setNames(loadTable())
	for i, name := range s.Datasets {
		if err := oneOf("longbench.datasets", canonicalSet(name), known); err != nil {
			return unknown("longbench.datasets", name, known)
		}
		for _, before := range s.Datasets[:i] {
			if canonicalSet(before) == canonicalSet(name) {
				return fmt.Errorf("longbench.datasets = %q: named twice", name)
			}
		}
	}
	return nil
}

// datasets returns the sets under their names in the table.
func (s Spec) datasets() []string {
	var names []string
	for _, n := range s.Datasets {
		names = append(names, canonicalSet(n))
	}
	return names
}

// tokenizer returns the tokenizer for counting, given the model's.
func (s Spec) tokenizer(model []Tokenizer) (Tokenizer, error) {
	t := Llama2
	switch {
	case s.Tokenizer != "":
		t = Tokenizer(s.Tokenizer)
	case len(model) > 0 && model[0] != "":
		t = model[0]
	}
	return t, oneOf("workload.tokenizer", string(t), valuesOf("Tokenizer"))
}

// valuesOf returns the values that the tag of a field of Spec lists.
func valuesOf(field string) []string {
	f, _ := reflect.TypeFor[Spec]().FieldByName(field)
	return strings.Fields(f.Tag.Get("values"))
}

// unknown returns an error that lists the known names of a key and suggests the nearest one.
func unknown(key, value string, known []string) error {
	return fmt.Errorf("%s = %q: unknown; use %s%s", key, rows.Short(value), strings.Join(known, ", "),
		nearest.Meant(value, known))
}

// oneOf returns nil if value is known.
func oneOf(key, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return unknown(key, value, known)
}
