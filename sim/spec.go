package sim

import "github.com/sparseserve/sparseserve/sim/dsa"

// Spec holds every knob of one serving system: the [system] table of a configuration. Presets
// for the papers' systems are in package experiments.
type Spec struct {
	Name   string `toml:"name"`
	Engine string `toml:"engine"` // whose scheduler, kernels and host this is (package hw)

	// Attention.
	Attention    string `toml:"attention"`     // full | sparse
	BudgetTokens int    `toml:"budget_tokens"` // KV tokens a head attends to when sparse
	BlockTokens  int    `toml:"block_tokens"`  // tokens per KV block
	SinkBlocks   int    `toml:"sink_blocks"`   // first blocks always selected, charged to the budget
	WindowBlocks int    `toml:"window_blocks"` // last blocks always selected, charged to the budget
	DenseLayers  int    `toml:"dense_layers"`  // first layers that keep full attention
	Selections   string `toml:"selections"`    // file of recorded selections; empty draws them from the score process

	// Which blocks sparse attention selects (package dsa).
	Selection  string  `toml:"selection"`  // full | arkvale | quest | mean | infllm | streaming | psa | infinigen
	Epsilon    float64 `toml:"epsilon"`    // psa: share of the attention to reach
	Microbatch int     `toml:"microbatch"` // psa: blocks of one iteration of progressive attention
	Pipelined  bool    `toml:"pipelined"`  // psa: the next iteration's loads overlap with one's attention
	PSAStop    string  `toml:"psa_stop"`   // psa: the heads of a layer end together, or each KV head by itself: layer | head
	Margin     float64 `toml:"margin"`     // infinigen: below the highest score, in units of q·k / sqrt(d)

	// Hierarchical KV cache.
	Offload     bool    `toml:"offload"`
	LoadEngine  string  `toml:"load_engine"`     // memcpy | flash
	SaveEngine  string  `toml:"save_engine"`     // memcpy | gpu | flash
	Lookup      string  `toml:"lookup"`          // who finds the selected blocks that are not in HBM: host | gpu
	Eviction    string  `toml:"eviction"`        // lru | fifo | clock | sieve | score
	Pool        string  `toml:"pool"`            // unified | per-layer
	Utilisation float64 `toml:"utilisation"`     // share of HBM that the server may use
	KVGiB       float64 `toml:"kv_gib"`          // HBM for KV, metadata and prefill buffers (Mavl); 0 = all that is free
	DRAMGiB     float64 `toml:"dram_gib"`        // host pool
	SaveBuffer  float64 `toml:"save_buffer_mib"` // KV queued to be saved before compute stalls

	// Scheduler.
	Base         string  `toml:"base"`          // vllm | vllm-v1 | sarathi
	MaxRequests  int     `toml:"max_requests"`  // Rmax
	MaxTokens    int     `toml:"max_tokens"`    // Tmax, tokens per iteration
	Watermark    float64 `toml:"watermark"`     // share of blocks kept free at admission
	BatchControl bool    `toml:"batch_control"` // Algorithm 1
	Window       int     `toml:"window"`        // w, decode steps whose selections make the working set

	// Sampling is how tokens are drawn: top-p sorts the logits of every request, random does
	// not. vLLM takes it from a model's generation_config.json by default.
	Sampling string `toml:"sampling"` // random | top-p

	// Prefill.
	Prefill     string `toml:"prefill"`      // plain | chunked | layer | layer-chunked
	ChunkTokens int    `toml:"chunk_tokens"` // B
	MaxInject   int64  `toml:"max_inject"`   // maxInjectToken in token-layers a batch; 0 = chunk_tokens x layers

	// Prompts beyond the model's maximum: truncate (middle) | reject.
	OverLength      string `toml:"over_length"`
	MaxPromptTokens int    `toml:"max_prompt_tokens"` // 0 = the model's maximum

	// Heads simulates every (layer, KV head) group, or a hashed sample of SampleGroups of them
	// with the cache scaled alike.
	Heads        string `toml:"heads"` // sampled | full
	SampleGroups int    `toml:"sample_groups"`
}

// Values of Spec.PSAStop and Spec.Lookup.
const (
	PSAStopLayer = "layer"
	PSAStopHead  = "head"
	LookupHost   = "host"
	LookupGPU    = "gpu"
)

// GPULookup says whether the GPU finds out which selected blocks are in HBM, so that no layer
// waits for the host.
func (s *Spec) GPULookup() bool { return s.Offload && s.Lookup == LookupGPU }

// Sparse says whether decode attention selects blocks.
func (s *Spec) Sparse() bool { return s.Attention == "sparse" && s.Selection != dsa.FullName }

// Progressive says whether decode attention goes on microbatch by microbatch until it has seen
// enough.
func (s *Spec) Progressive() bool { return s.Sparse() && s.Selection == "psa" }

// Policy returns the selection algorithm of sparse attention.
func (s *Spec) Policy() (dsa.Policy, *dsa.Algorithm, error) {
	named, err := dsa.AlgorithmNamed(s.Selection)
	if err != nil {
		return nil, nil, err
	}
	return named.Make(&dsa.Options{
		Blocks: Candidates(s), Epsilon: s.Epsilon, Microbatch: s.Microbatch, Pipelined: s.Pipelined,
		HeadStops: s.PSAStop == PSAStopHead, Margin: s.Margin,
	}), named, nil
}
