package traces

// Names that Spec.Trace takes besides a path. A file or folder with such a name is written as
// "./longbench".
const (
	BuiltIn   = "longbench" // the built-in LongBench mix
	Synthetic = "synthetic" // Spec.PromptLengths and Spec.OutputLengths
	Sessions  = "sessions"  // conversations of SessionSpec.Turns
)

// Names that Spec.Arrivals and LongBenchSpec.Output take.
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

// Spec has the tables [workload], [sessions] and [longbench] of a configuration.
// docs/configuration.md has the comments, units and ranges of the fields.
type Spec struct {
	// longbench (built-in mix), synthetic (lengths), sessions (with turns), or the path of a trace
	// file, of a folder of LongBench JSONL files, or - for standard input; gzip and zstd are unpacked
	Trace string `toml:"trace"`
	// format of the trace file; empty: detected
	Format string `toml:"format" used:"file"`

	// prompt lengths of a synthetic trace: fixed(n), uniform(min, max), normal(mean, sd),
	// lognormal(median, sigma) or zipf(s, max), in tokens or 64k; cut to at least 1 and to an
	// optional third argument of normal and lognormal. With trace sessions: tokens that a user adds
	// per turn, by default "lognormal(14, 1.95)"
	PromptLengths string `toml:"prompt_lengths,omitempty" used:"lengths"`
	// output lengths, as prompt_lengths; with trace sessions by default "lognormal(275, 0.69)"
	OutputLengths string `toml:"output_lengths,omitempty" used:"lengths"`

	// tokenizer that counts the tokens of LongBench prompts; empty: the model's
	Tokenizer string `toml:"tokenizer" used:"texts" values:"llama2 llama3"`

	// distribution of gaps between requests (poisson, gamma, fixed), the file's recorded times
	// (trace), or a number of clients, each of which waits for its answer (closed)
	Arrivals string `toml:"arrivals" values:"poisson gamma fixed trace closed"`
	// mean request rate, one run per value of a list; not used with arrivals trace or closed. With
	// sessions or conversation files: rate of new sessions
	Rate float64 `toml:"rate" used:"rate" unit:"requests/s" range:">= 1e-09, <= 1e+09"`
	// arrivals gamma: coefficient of variation of the gaps; 1 equals Poisson
	Burstiness float64 `toml:"burstiness" used:"gamma" range:">= 0.01, <= 100"`
	// arrivals trace: factor on the recorded times; 2 replays twice as fast
	Speed float64 `toml:"speed" used:"recorded" range:">= 1e-09, <= 1e+09"`

	// in place of rate: [seconds, requests/s] of each stage. The last stage continues until all
	// requests have arrived; with requests = 0 its end ends the run
	Stages [][]float64 `toml:"stages,omitempty" used:"gaps" unit:"s, requests/s"`
	// arrivals closed: number of clients, one run per value of a list; with sessions each client has
	// one at a time
	Concurrency int `toml:"concurrency,omitempty" used:"closed" unit:"requests" range:">= 0, <= 100000"`
	// arrivals closed and turns of sessions: mean time between an answer and the client's next
	// request, exponential; 0: none; with trace sessions by default 370
	ThinkS float64 `toml:"think_s,omitempty" used:"thinks" unit:"s" range:">= 0, <= 1e6"`

	// number of requests, each turn of a session counted as one; 0: all of the file or of the stages.
	// A file may hold fewer
	Requests int `toml:"requests" unit:"requests" range:">= 0, <= 1e+07"`

	// factor on every output length
	OutputScale float64 `toml:"output_scale" range:">= 1e-06, <= 1e+06"`

	// fraction of each prompt whose KV is already cached, in whole blocks; at least one token is
	// computed. With a prefix cache and prefix_cache.dram_gib it is in DRAM. Not for traces that
	// record shared content
	PrefixHit float64 `toml:"prefix_hit" unit:"share" range:">= 0, <= 1"`

	SessionSpec   `toml:"sessions"`
	LongBenchSpec `toml:"longbench"`
}

// SessionSpec describes the conversations of trace = "sessions".
type SessionSpec struct {
	// number of sessions, each run with all its turns, in place of workload.requests, so that every
	// server gets the same requests; 0: enough for workload.requests
	Sessions int `toml:"count,omitempty" used:"sessions" range:">= 0, <= 1e+06"`
	// turns per session, as workload.prompt_lengths; default "lognormal(2.4, 0.84)"
	Turns string `toml:"turns,omitempty" used:"sessions"`
	// number of different system prompts, default 10; 0: none
	SystemPrompts int `toml:"system_prompts,omitempty" used:"sessions" range:">= 0, <= 100000"`
	// lengths of system prompts, as workload.prompt_lengths; default "fixed(1000)"
	SystemLengths string `toml:"system_lengths,omitempty" used:"sessions,system_prompts"`
	// probability of the k-th system prompt, proportional to k^-s; default 1; 0: equal
	SystemZipf float64 `toml:"system_zipf,omitempty" used:"sessions,system_prompts" range:">= 0, <= 100"`
}

// LongBenchSpec selects requests of LongBench, in the built-in mix or in files.
type LongBenchSpec struct {
	// sets in the built-in mix, or to keep of LongBench files; other formats ignore it
	Datasets []string `toml:"datasets" used:"longbench"`
	// model that generated the output lengths: base (Llama-2-7B), chat (Llama-2-7B-chat) or
	// instruct (Llama-3-8B-Instruct)
	Output string `toml:"output" used:"longbench" values:"base chat instruct"`
}

// DefaultSpec is the workload of the SparseServe paper (section 4.1): its ten LongBench sets as one
// Poisson trace.
func DefaultSpec() Spec {
	return Spec{
		Trace:       BuiltIn,
		Arrivals:    ArrivalsPoisson,
		Rate:        0.1,
		Burstiness:  1,
		Speed:       1,
		Requests:    300,
		OutputScale: 1,
		LongBenchSpec: LongBenchSpec{Output: OutputBase, Datasets: []string{
			"qasper", "narrativeqa", "multifieldqa_en", "dureader",
			"gov_report", "qmsum", "multi_news", "vcsum",
			"lcc", "repobench-p",
		}},
	}
}

// AllSets returns the names of the LongBench sets, as in Datasets.
func AllSets() []string { return setNames(loadTable()) }
