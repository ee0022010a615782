package traces

import (
	"fmt"
	"math"
	"slices"
)

// Names that Spec.Trace takes besides a path. A file or folder of that name is reached as
// "./longbench".
const (
	BuiltIn   = "longbench" // the built-in LongBench mix
	Synthetic = "synthetic" // Spec.PromptLengths and Spec.OutputLengths
)

// Names that Spec.Arrivals and Spec.Output take.
const (
	ArrivalsPoisson = "poisson" // independent gaps, exponential
	ArrivalsGamma   = "gamma"   // independent gaps, Gamma with Spec.Burstiness
	ArrivalsFixed   = "fixed"   // equal gaps
	ArrivalsTrace   = "trace"   // the file's own times, Spec.Speed times as fast
	ArrivalsClosed  = "closed"  // Spec.Concurrency clients, each sends when its last was answered

	OutputBase     = "base"     // Llama-2-7B: nearly always to the limit
	OutputChat     = "chat"     // Llama-2-7B-chat: stops by itself
	OutputInstruct = "instruct" // Llama-3-8B-Instruct
)

var (
	arrivalNames = []string{ArrivalsPoisson, ArrivalsGamma, ArrivalsFixed, ArrivalsTrace,
		ArrivalsClosed}
	outputNames    = []string{OutputBase, OutputChat, OutputInstruct}
	tokenizerNames = []string{string(Llama2), string(Llama3)}
)

// Spec is the [workload] table of a configuration. Comments, units and ranges of the fields are
// what docs/configuration.md says.
type Spec struct {
	// the built-in LongBench mix, synthetic lengths, or the path of a file, of a folder of
	// LongBench JSONL files, or - for standard input; gzip and zstd are unpacked
	Trace string `toml:"trace"`
	// of that file; empty recognises it
	Format string `toml:"format"`

	// of a synthetic trace, in tokens: fixed(n), uniform(least, most), normal(mean, sd),
	// lognormal(median, sigma) or zipf(s, max); truncated to 1 and more, and to the third
	// number of normal and lognormal, if any
	PromptLengths string `toml:"prompt_lengths,omitempty"`
	// the same of outputs
	OutputLengths string `toml:"output_lengths,omitempty"`

	// LongBench sets in the mix, or kept of LongBench files; other formats ignore it
	Datasets []string `toml:"datasets"`

	// counts LongBench prompts; empty takes the model's
	Tokenizer string `toml:"tokenizer"`

	// distribution of the gaps between requests; the file's own times; or closed: a fixed number of
	// clients, each sends its next request when its last was answered or rejected
	Arrivals string `toml:"arrivals"`
	// mean request rate, each value of a list a run; not used by arrivals trace and closed
	Rate float64 `toml:"rate" unit:"requests/s" range:">= 1e-09, <= 1e+09"`
	// arrivals gamma: coefficient of variation of the gaps; 1 is Poisson
	Burstiness float64 `toml:"burstiness" range:">= 0.01, <= 100"`
	// arrivals trace: 2 replays twice as fast
	Speed float64 `toml:"speed" range:">= 1e-09, <= 1e+09"`

	// in place of rate: [seconds, requests/s] of each stage; the last goes on until the requests
	// are out, or with requests 0 ends the run
	Stages [][]float64 `toml:"stages,omitempty"`
	// arrivals closed: clients, each value of a list a run
	Concurrency int `toml:"concurrency,omitempty" unit:"requests" range:">= 0, <= 100000"`
	// arrivals closed: mean time from an answer to the client's next request, exponential; 0 = none
	ThinkS float64 `toml:"think_s,omitempty" unit:"s" range:">= 0, <= 1e6"`

	// requests to run; 0 = all of a file, which may be shorter, or of the stages
	Requests int `toml:"requests" unit:"requests" range:">= 0, <= 1e+07"`

	// whose LongBench output lengths: Llama-2-7B's, its chat model's, or Llama-3-8B-Instruct's
	Output string `toml:"output"`
	// multiplies every output length, whatever its source
	OutputScale float64 `toml:"output_scale" range:">= 1e-06, <= 1e+06"`

	// share of each prompt whose KV the server has from earlier requests, in whole blocks; at
	// least one token of a prompt is computed
	PrefixHit float64 `toml:"prefix_hit" range:">= 0, <= 1"`
}

// Choices returns what a key of [workload] may be, or nil where that is no choice of names.
func Choices(key string) []string {
	switch key {
	case "format":
		return FormatNames()
	case "datasets":
		return AllSets()
	case "tokenizer":
		return tokenizerNames
	case "trace":
		return []string{BuiltIn, Synthetic, "a path"}
	case "arrivals":
		return arrivalNames
	case "output":
		return outputNames
	}
	return nil
}

// DefaultSpec is the workload of the SparseServe paper (section 4.1): its ten LongBench sets as
// one Poisson trace.
func DefaultSpec() Spec {
	return Spec{
		Trace: BuiltIn,
		Datasets: []string{
			"qasper", "narrativeqa", "multifieldqa_en", "dureader",
			"gov_report", "qmsum", "multi_news", "vcsum",
			"lcc", "repobench-p",
		},
		Arrivals:    ArrivalsPoisson,
		Rate:        0.1,
		Burstiness:  1,
		Speed:       1,
		Requests:    300,
		Output:      OutputBase,
		OutputScale: 1,
	}
}

// AllSets lists the LongBench sets, as Datasets names them.
func AllSets() []string { return setNames(loadTable()) }

// Validate returns an error that names the first key with an impossible value. It looks at no
// file.
func (s Spec) Validate() error {
	if s.Trace == "" {
		return fmt.Errorf("workload.trace = %q: name %q, %q, or a file or folder", s.Trace,
			BuiltIn, Synthetic)
	}
	checks := []error{
		s.checkDatasets(),
		oneOf("workload.arrivals", s.Arrivals, arrivalNames),
		oneOf("workload.output", s.Output, outputNames),
		positive("workload.output_scale", s.OutputScale, 1e-6, 1e6),
		positive("workload.burstiness", s.Burstiness, 0.01, 100),
		positive("workload.speed", s.Speed, 1e-9, 1e9),
		s.checkRate(),
		s.checkStages(),
		s.checkClosed(),
		s.checkLengths(),
		s.checkPrefixHit(),
	}
	if s.Tokenizer != "" {
		checks = append(checks, oneOf("workload.tokenizer", s.Tokenizer, tokenizerNames))
	}
	if s.Format != "" {
		checks = append(checks, oneOf("workload.format", s.Format, FormatNames()))
	}
	switch {
	case s.Requests < 1 && !s.FromFile() && (s.Requests < 0 || len(s.Stages) == 0):
		checks = append(checks, fmt.Errorf("workload.requests = %d: must be at least 1", s.Requests))
	case s.Requests < 0:
		checks = append(checks, fmt.Errorf("workload.requests = %d: must be at least 1, or 0 for all "+
			"of the trace", s.Requests))
	}
	if !s.FromFile() {
		what := "the built-in mix"
		if s.Trace == Synthetic {
			what = "a synthetic trace"
		}
		if s.Arrivals == ArrivalsTrace {
			checks = append(checks, fmt.Errorf("workload.arrivals = %q: %s has no times of its own; use "+
				"poisson, gamma, fixed or closed", s.Arrivals, what))
		}
		if s.Format != "" {
			checks = append(checks, fmt.Errorf("workload.format = %q: workload.trace = %q is %s, not a "+
				"file; leave format empty or write ./%s", s.Format, s.Trace, what, s.Trace))
		}
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// FromFile says whether the lengths are read from a file.
func (s Spec) FromFile() bool { return s.Trace != BuiltIn && s.Trace != Synthetic }

// HasRate says whether requests arrive at Rate.
func (s Spec) HasRate() bool {
	return s.Arrivals != ArrivalsTrace && s.Arrivals != ArrivalsClosed && len(s.Stages) == 0
}

func (s Spec) checkRate() error {
	if !s.HasRate() && s.Rate == 0 {
		return nil
	}
	return positive("workload.rate", s.Rate, 1e-9, 1e9)
}

func (s Spec) checkClosed() error {
	if s.Arrivals == ArrivalsClosed && s.Concurrency < 1 {
		return fmt.Errorf("workload.arrivals = %q: needs clients; set workload.concurrency to 1 or more",
			s.Arrivals)
	}
	return nil
}

// checkLengths refuses distributions that cannot be read, and synthetic traces without them.
func (s Spec) checkLengths() error {
	const prompts, outputs = "workload.prompt_lengths", "workload.output_lengths"
	for _, l := range []struct{ key, text string }{{prompts, s.PromptLengths},
		{outputs, s.OutputLengths}} {
		if l.text == "" {
			continue
		}
		if _, err := ParseLengths(l.key, l.text); err != nil {
			return err
		}
	}
	switch {
	case s.Trace != Synthetic:
	case s.PromptLengths+s.OutputLengths == "":
		return fmt.Errorf("workload.trace = %q: needs lengths; set %s and %s, as in \"lognormal(8192, "+
			"0.5)\" and \"fixed(200)\"", s.Trace, prompts, outputs)
	case s.OutputLengths == "":
		return fmt.Errorf("%s = %q: needs %s too, as in \"fixed(200)\"", prompts,
			s.PromptLengths, outputs)
	case s.PromptLengths == "":
		return fmt.Errorf("%s = %q: needs %s too, as in \"lognormal(8192, 0.5)\"", outputs,
			s.OutputLengths, prompts)
	}
	return nil
}

func (s Spec) checkDatasets() error {
	if len(s.Datasets) == 0 {
		return fmt.Errorf("workload.datasets = []: name at least one LongBench set")
	}
	known := setNames(loadTable())
	for i, name := range s.Datasets {
		if err := oneOf("workload.datasets", canonicalSet(name), known); err != nil {
			return unknown("workload.datasets", name, known)
		}
		for _, before := range s.Datasets[:i] {
			if canonicalSet(before) == canonicalSet(name) {
				return fmt.Errorf("workload.datasets = %q: named twice", name)
			}
		}
	}
	return nil
}

// datasets returns the sets by their names in the table.
func (s Spec) datasets() []string {
	names := make([]string, len(s.Datasets))
	for i, n := range s.Datasets {
		names[i] = canonicalSet(n)
	}
	return names
}

// tokenizer returns the tokenizer to count with, given the model's.
func (s Spec) tokenizer(model []Tokenizer) (Tokenizer, error) {
	t := Llama2
	switch {
	case s.Tokenizer != "":
		t = Tokenizer(s.Tokenizer)
	case len(model) > 0 && model[0] != "":
		t = model[0]
	}
	if !slices.Contains(tokenizerNames, string(t)) {
		return "", unknown("workload.tokenizer", string(t), tokenizerNames)
	}
	return t, nil
}

// positive refuses NaN, infinities, and values outside [least, most]: beyond them simulated
// time or a token count leaves its integer.
func positive(key string, v, least, most float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%s = %v: must be a finite number", key, v)
	case v <= 0:
		return fmt.Errorf("%s = %v: must be above 0", key, v)
	case v < least || v > most:
		return fmt.Errorf("%s = %v: must be between %v and %v", key, v, least, most)
	}
	return nil
}

func (s Spec) checkPrefixHit() error {
	if !(s.PrefixHit >= 0 && s.PrefixHit <= 1) {
		return fmt.Errorf("workload.prefix_hit = %v: is a share of each prompt, 0 to 1", s.PrefixHit)
	}
	return nil
}
