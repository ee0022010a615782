package traces

// Names that Spec.Trace takes besides a path. A file or folder with such a name is written as
// "./longbench".
const (
	BuiltIn   = "longbench" // the built-in LongBench mix
	Synthetic = "synthetic" // Spec.PromptLengths and Spec.OutputLengths
	Sessions  = "sessions"  // conversations of Spec.Turns
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

// Spec is the [workload] table of a configuration. docs/configuration.md has the comments, units
// and ranges of the fields.
type Spec struct {
	// the built-in LongBench mix, synthetic lengths, sessions with turns, or the path of a file, of a
	// folder of LongBench JSONL files, or - for standard input; gzip and zstd are unpacked
	Trace string `toml:"trace"`
	// format of that file; empty: detected
	Format string `toml:"format" used:"file"`

	// of a synthetic trace, in tokens or 64k: fixed(n), uniform(least, most), normal(mean, sd),
	// lognormal(median, sigma) or zipf(s, max); truncated to 1 and more, and to the third
	// number of normal and lognormal, if any; of sessions what a user adds in a turn, there
	// "lognormal(14, 1.95)" by default
	PromptLengths string `toml:"prompt_lengths,omitempty" used:"lengths"`
	// the same of outputs; of sessions "lognormal(275, 0.69)" by default
	OutputLengths string `toml:"output_lengths,omitempty" used:"lengths"`

	// trace sessions: that many in place of requests, each with all its turns, so that every server
	// gets the same requests; 0 = as many as requests need
	Sessions int `toml:"sessions,omitempty" used:"sessions" range:">= 0, <= 1e+06"`
	// trace sessions: turns of a session, in the same words; "lognormal(2.4, 0.84)" by default
	Turns string `toml:"turns,omitempty" used:"sessions"`
	// trace sessions: system prompts that sessions begin with; 0 = none, there 10 by default
	SystemPrompts int `toml:"system_prompts,omitempty" used:"sessions" range:">= 0, <= 100000"`
	// trace sessions: lengths of system prompts, in the same words; "fixed(1000)" by default
	SystemLengths string `toml:"system_lengths,omitempty" used:"sessions,system_prompts"`
	// trace sessions: the k-th system prompt has a share of sessions in proportion to k^-s; 0 = all
	// alike, there 1 by default
	SystemZipf float64 `toml:"system_zipf,omitempty" used:"sessions,system_prompts" range:">= 0, <= 100"`

	// LongBench sets of the mix, or to keep of LongBench files; ignored for other formats
	Datasets []string `toml:"datasets" used:"longbench"`

	// counts LongBench prompts; empty takes the model's
	Tokenizer string `toml:"tokenizer" used:"texts"`

	// distribution of the gaps between requests; the file's own times; or closed: a fixed number of
	// clients, each sends its next request when its last was answered or rejected
	Arrivals string `toml:"arrivals"`
	// mean request rate, each value of a list a run; not used by arrivals trace and closed; of
	// sessions, and of a file of conversations, their rate
	Rate float64 `toml:"rate" used:"rate" unit:"requests/s" range:">= 1e-09, <= 1e+09"`
	// arrivals gamma: coefficient of variation of the gaps; 1 is Poisson
	Burstiness float64 `toml:"burstiness" used:"gamma" range:">= 0.01, <= 100"`
	// arrivals trace: 2 replays twice as fast
	Speed float64 `toml:"speed" used:"recorded" range:">= 1e-09, <= 1e+09"`

	// in place of rate: [seconds, requests/s] of each stage; the last goes on until the requests
	// are out, or with requests 0 ends the run
	Stages [][]float64 `toml:"stages,omitempty" used:"gaps" unit:"s, requests/s"`
	// arrivals closed: clients, each value of a list a run; each has a session at a time, if any
	Concurrency int `toml:"concurrency,omitempty" used:"closed" unit:"requests" range:">= 0, <= 100000"`
	// arrivals closed, and turns of sessions: mean time from an answer to the client's next request,
	// exponential; 0 = none; of trace sessions 370 by default
	ThinkS float64 `toml:"think_s,omitempty" used:"thinks" unit:"s" range:">= 0, <= 1e6"`

	// requests to run, each turn of a session one; 0 = all of a file, which may be shorter, or of the
	// stages
	Requests int `toml:"requests" unit:"requests" range:">= 0, <= 1e+07"`

	// model whose LongBench output lengths are used: Llama-2-7B, its chat model, or
	// Llama-3-8B-Instruct
	Output string `toml:"output" used:"longbench"`
	// multiplies every output length, whatever its source
	OutputScale float64 `toml:"output_scale" range:">= 1e-06, <= 1e+06"`

	// share of each prompt whose KV the server has from earlier requests, in whole blocks; at
	// least one token of a prompt is computed; with a prefix cache and prefix_cache.dram_gib it is in
	// DRAM; not of a trace that says what prompts share
	PrefixHit float64 `toml:"prefix_hit" unit:"share" range:">= 0, <= 1"`
}

// Choices returns the names that a key of [workload] may have, or nil if the key is not a choice of
// names.
func Choices(key string) []string {
	switch key {
	case "format":
		return FormatNames()
	case "datasets":
		return AllSets()
	case "tokenizer":
		return tokenizerNames
	case "trace":
		return []string{BuiltIn, Synthetic, Sessions, "a path"}
	case "arrivals":
		return arrivalNames
	case "output":
		return outputNames
	}
	return nil
}

// DefaultSpec is the workload of the SparseServe paper (section 4.1): its ten LongBench sets as one
// Poisson trace.
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

// AllSets returns the names of the LongBench sets, as in Datasets.
func AllSets() []string { return setNames(loadTable()) }
