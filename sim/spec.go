package sim

import (
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Spec is the configuration of one serving system: the table [system] and the tables of its parts.
// Presets for the papers' systems are in package experiments. docs/configuration.md prints the
// comments, units and ranges of the fields.
type Spec struct {
	// name of the system: its folder of results and its row in tables; only in [[systems]]
	Name string `toml:"name"`
	// serving engine: scheduler, kernels and host times (list engines)
	Engine string `toml:"engine"`
	// whether the engine runs as a server or offline; with the card it sets the defaults of
	// max_tokens and max_requests
	Use string `toml:"use" used:"batches"`
	// number of GPUs that share each layer (tensor parallelism): 1, 2, 4 or 8. HBM sizes are per GPU
	TensorParallel int `toml:"tensor_parallel" unit:"GPUs" range:">= 1, <= 8"`
	// number of GPUs that divide the experts (expert parallelism): tensor_parallel or a divisor of
	// it, with which several GPUs slice each expert. 1: each GPU holds a slice of every expert
	ExpertParallel int `toml:"expert_parallel" used:"experts" unit:"GPUs" range:">= 1, <= 8"`
	// fraction of HBM that the server may use (vLLM's gpu_memory_utilization)
	Utilisation float64 `toml:"utilisation" unit:"share" range:"> 0, <= 1"`
	// HBM for KV, metadata and prefill buffers; 0: all free HBM
	KVGiB float64 `toml:"kv_gib" unit:"GiB" range:">= 0, <= 1e+06"`
	// host memory for KV, shared by the GPUs of tensor parallelism; must be above 0 with offload
	DRAMGiB float64 `toml:"dram_gib" used:"dram" unit:"GiB" range:">= 0, <= 1e+06"`
	// type of KV in HBM and DRAM: auto (the checkpoint's, or the engine's for an indexer on cards with
	// FP4), bf16 or fp8 (vLLM's --kv-cache-dtype). Attention has its own measured times for FP8
	KVDtype string `toml:"kv_dtype" values:"auto bf16 fp8"`
	// size of a KV block
	BlockTokens int `toml:"block_tokens" unit:"tokens" range:">= 1, <= 65536"`
	// scheduler that forms batches
	Scheduler string `toml:"scheduler"`
	// largest number of requests in a batch
	MaxRequests int `toml:"max_requests" unit:"requests" range:">= 1, <= 1e+06"`
	// largest number of tokens in a batch
	MaxTokens int `toml:"max_tokens" unit:"tokens" range:">= 1, <= 1e+09"`
	// fraction of all blocks that stays free at admission
	Watermark float64 `toml:"watermark" unit:"share" range:">= 0, < 1"`
	// scheduler sglang: scales the memory that admissions leave for the outputs of running requests
	// (SGLang's --schedule-conservativeness)
	Conservativeness float64 `toml:"conservativeness" used:"outputs" range:">= 0, <= 100"`
	// how tokens are sampled: random; top-p, which sorts the logits of each request; or model, which
	// is top-p if the model's generation_config.json sets top_p and random otherwise
	Sampling string `toml:"sampling" values:"random top-p model"`

	Selection   SelectionSpec   `toml:"selection"`
	Offload     OffloadSpec     `toml:"offload"`
	Prefill     PrefillSpec     `toml:"prefill"`
	PrefixCache PrefixCacheSpec `toml:"prefix_cache"`
	Speculation SpeculationSpec `toml:"speculation"`
	Simulation  SimulationSpec  `toml:"simulation"`
}

// SelectionSpec says which KV blocks decodes attend to: the table [selection].
type SelectionSpec struct {
	// decodes attend to selected blocks; false: to all blocks
	On bool `toml:"on"`
	// selection algorithm (list selections)
	Policy string `toml:"policy" used:"selects,scored"`
	// tokens that a head attends to, sink and recent blocks included; only for algorithms with a
	// fixed budget
	BudgetTokens int `toml:"budget_tokens" used:"sparse,fixed" unit:"tokens" range:">= 1, <= 1e+09"`
	// number of first blocks that are always selected
	SinkBlocks int `toml:"sink_blocks" used:"sparse" unit:"blocks" range:">= 0, <= 1e+06"`
	// number of newest blocks that are always selected, at least 1
	RecentBlocks int `toml:"recent_blocks" used:"sparse" unit:"blocks" range:">= 0, <= 1e+06"`
	// number of first layers that keep full attention
	DenseLayers int `toml:"dense_layers" used:"sparse" unit:"layers" range:">= 0, <= 10000"`
	// file of recorded selections to replay; empty: selections are drawn from the score process
	Recording string `toml:"recording" used:"sparse"`
	// heads that select together, with a fixed budget: all query heads of a KV head, or each query
	// head alone, and the KV head attends to the union
	Per string `toml:"per" used:"sparse,fixed,groups,drawn" values:"kv_head query_head"`
	// psa: attention, from 0 to 1, at which a head stops
	Epsilon float64 `toml:"epsilon" used:"psa" range:"> 0, < 1"`
	// psa: blocks per iteration of progressive attention
	Microbatch int `toml:"microbatch" used:"psa" unit:"blocks" range:">= 1, <= 1e+06"`
	// psa: load the next iteration's blocks during the attention of this one
	Pipelined bool `toml:"pipelined" used:"psa,offload"`
	// psa: stop all heads of a layer together, or each KV head alone
	Stop string `toml:"stop" used:"psa" values:"layer head"`
	// infinigen: largest distance below the highest score at which a token is selected
	Margin float64 `toml:"margin" used:"infinigen" unit:"q·k / sqrt(d)" range:">= 0, <= 1e+06"`
}

// OffloadSpec says how KV moves between DRAM and HBM: the table [offload].
type OffloadSpec struct {
	// DRAM holds all KV and HBM caches it
	On bool `toml:"on"`
	// how missing blocks are loaded: a memcpy per block, a gather kernel (FlashH2D), or a kernel that
	// also looks them up (HiSparse's swap-in)
	Load string `toml:"load" used:"offload"`
	// how blocks are saved: a memcpy per block, a scatter kernel, or a copy that the CPU scatters
	// (FlashD2H)
	Save string `toml:"save" used:"offload"`
	// processor that finds the selected blocks missing in HBM; gpu needs offload.load = "flash"
	Lookup string `toml:"lookup" used:"offload" values:"host gpu"`
	// order in which blocks leave HBM (list evictions)
	Eviction string `toml:"eviction" used:"cache"`
	// one pool of HBM blocks for all layers, or one per layer
	Pool string `toml:"pool" used:"cache" values:"unified per-layer"`
	// KV that may wait to be saved before computation stalls
	SaveBufferMiB float64 `toml:"save_buffer_mib" used:"offload" unit:"MiB" range:">= 0, <= 1e+06"`
	// limit batches so that their working sets fit in HBM (Algorithm 1)
	BatchControl bool `toml:"batch_control" used:"cache"`
	// number of last decode steps whose selections form the working set
	WorkingSetSteps int `toml:"working_set_steps" used:"cache,sparse" unit:"steps" range:">= 1, <= 100000"`
	// HiSparse: size of the HBM buffer of each layer of a decoding request; 0: HBM is one cache for
	// all requests. A simulated block stands for block_tokens separate tokens
	HotBuffer int `toml:"hot_buffer" unit:"tokens" range:">= 0, <= 1e+08"`
	// HiSparse: when a request frees its other KV in HBM: at the end of its prefill, or if HBM is
	// full
	HotRelease string `toml:"hot_release" used:"hot"`
	// host KV memory as a multiple of that in HBM, at most system.dram_gib; 0: system.dram_gib
	HostPoolRatio float64 `toml:"host_pool_ratio" used:"hot" range:">= 0, <= 1e+06"`
}

// PrefillSpec says how prompts are computed: the table [prefill].
type PrefillSpec struct {
	// how steps divide prompts: not (plain), by tokens (chunked), by layers (layer), or by both
	Split string `toml:"split" values:"plain chunked layer layer-chunked"`
	// largest prefill chunk
	ChunkTokens int `toml:"chunk_tokens" used:"chunks" unit:"tokens" range:">= 1, <= 1e+09"`
	// largest layer-segmented prefill in a batch, tokens x layers; 0: chunk_tokens x layers
	MaxInject int64 `toml:"max_inject" used:"layers" unit:"token-layers" range:">= 0, <= 1e+12"`
	// what happens to a prompt above the maximum: its middle is cut out, or it is rejected
	OverLength string `toml:"over_length" values:"truncate reject"`
	// longest prompt; 0: the model's maximum
	MaxPromptTokens int `toml:"max_prompt_tokens" unit:"tokens" range:">= 0, <= 1e+08"`
	// attention of prefill: dense or a sparse pattern (list prefills)
	Attention string `toml:"attention"`
	// minference: pattern file in MInference's format, or a published mix (list prefills)
	Pattern string `toml:"pattern" used:"minference"`
	// a-shape: first tokens, which every query attends to
	SinkTokens int `toml:"sink_tokens" used:"a-shape" unit:"tokens" range:">= 1, <= 1e+09"`
	// a-shape: newest tokens, which every query attends to
	RecentTokens int `toml:"recent_tokens" used:"a-shape" unit:"tokens" range:">= 1, <= 1e+09"`
	// vertical-slash: number of columns, which every query attends to
	Vertical int `toml:"vertical" used:"vertical-slash" unit:"lines" range:">= 1, <= 1e+09"`
	// vertical-slash: number of diagonals
	Slash int `toml:"slash" used:"vertical-slash" unit:"lines" range:">= 1, <= 1e+09"`
	// block-sparse: key blocks (64 tokens) that each query block (64 tokens) attends to
	Blocks int `toml:"blocks" used:"block-sparse" unit:"blocks" range:">= 1, <= 1e+06"`
}

// PrefixCacheSpec says how the KV of earlier prompts is kept and used again: the table
// [prefix_cache].
type PrefixCacheSpec struct {
	// reuse of the KV of earlier prompts with the same beginning: off, by hashed blocks (vllm), or by
	// a radix tree with pages of block_tokens (radix, as SGLang)
	Mode string `toml:"mode"`
	// host memory for cached prefixes, part of system.dram_gib; 0: none
	DRAMGiB float64 `toml:"dram_gib" unit:"GiB" range:">= 0, <= 1e+06"`
	// SSD space for cached prefixes below DRAM; 0: none
	SSDGiB float64 `toml:"ssd_gib" unit:"GiB" range:">= 0, <= 1e+06"`
	// SSD model of ssd_gib: a name or a file
	Drive string `toml:"drive" used:"ssd"`
	// unit in which DRAM and SSD store prefixes; a multiple of block_tokens
	Chunk int `toml:"chunk" used:"tiers" unit:"tokens" range:">= 1, <= 1e+06"`
	// order in which chunks leave DRAM and SSD; belady knows the trace: latest next use first
	Eviction string `toml:"eviction" used:"tiers"`
	// when KV is copied below HBM: when computed, after write_hits hits (selective), or when evicted
	Write string `toml:"write" used:"tiers"`
	// selective: number of hits in HBM before a chunk is copied below
	WriteHits int `toml:"write_hits" used:"tiers,selective" unit:"hits" range:">= 1, <= 255"`
	// what happens on a hit in DRAM or SSD: load, recompute, or whichever is faster (cheaper)
	Load string `toml:"load" used:"tiers"`
	// hits in DRAM or SSD with fewer tokens are recomputed
	LoadTokens int `toml:"load_tokens" used:"tiers" unit:"tokens" range:">= 0, <= 1e+06"`
	// what waits for a load: the request, while others run (vLLM's offloading connector); each layer,
	// for its part (HiCache); or the whole step
	Overlap string `toml:"overlap" used:"tiers"`
	// what a prompt attends to in its cached prefix in DRAM: all of it, or the blocks that each chunk
	// and KV head selects
	Attend string `toml:"attend" used:"cache,hits" values:"dense selected"`
	// weight of a token loaded from DRAM in limits such as max_tokens; a computed one has 1
	LoadWeight float64 `toml:"load_weight" used:"cache,hits" range:">= 0, <= 1000"`
}

// SpeculationSpec says how tokens are drafted: the table [speculation].
type SpeculationSpec struct {
	// tokens that MTP layers draft per decoding request and step; the next step verifies them; 0:
	// none. Needs a model with mtp_layers, and KV in HBM or hot buffers. The first token of a step has
	// the whole step as its TBT, others 0
	Tokens int `toml:"tokens" unit:"tokens" range:">= 0, <= 16"`
	// probability that a drafted token is accepted if all drafts before it were
	Acceptance float64 `toml:"acceptance" used:"drafts" unit:"share" range:">= 0, < 1"`
}

// SimulationSpec says how exactly the cache is simulated: the table [simulation].
type SimulationSpec struct {
	// simulate every (layer, KV head) group, or a sample of groups with a cache of proportional size
	Heads string `toml:"heads" used:"cache" values:"sampled full"`
	// number of groups in the sample
	Groups int `toml:"groups" used:"cache,sampled" unit:"groups" range:">= 1, <= 1e+06"`
}

// Values of Spec.SelectPer, Spec.PSAStop and Spec.Lookup.
const (
	PerKVHead    = "kv_head"
	PerQueryHead = "query_head"
	PSAStopLayer = "layer"
	PSAStopHead  = "head"
	LookupHost   = "host"
	LookupGPU    = "gpu"
)

// Values of Spec.PrefixAttention; an empty one is PrefixDense.
const (
	PrefixDense    = "dense"
	PrefixSelected = "selected"
)

// GPULookup reports whether the GPU finds the selected blocks that are in HBM, so that no layer
// waits for the host.
func (s *Spec) GPULookup() bool { return s.Offload.On && s.Offload.Lookup == LookupGPU }

// Values of Spec.PrefillAttention in addition to the pattern names.
const (
	PrefillDense      = "dense"
	PrefillMInference = "minference" // a pattern for each head
)

// PrefillHead returns the sparse prefill pattern of all heads; false if there is no single pattern.
func (s *Spec) PrefillHead() (pattern.Head, bool) {
	h, ok := pattern.Published(pattern.Kind(s.Prefill.Attention))
	switch h.Kind {
	case pattern.AShape:
		h.A, h.B = s.Prefill.SinkTokens, s.Prefill.RecentTokens
	case pattern.VerticalSlash:
		h.A, h.B = s.Prefill.Vertical, s.Prefill.Slash
	case pattern.BlockSparse:
		h.A = s.Prefill.Blocks
	}
	return h, ok && h.Kind != pattern.Dense
}

// SparsePrefill reports whether prefill attention is sparse.
func (s *Spec) SparsePrefill() bool {
	return s.Prefill.Attention != PrefillDense && s.Prefill.Attention != ""
}

// Segmented reports whether prefills run layer by layer.
func (s *Spec) Segmented() bool { return sched.Segmented(s.Prefill.Split) }

// Sparse reports whether decode attention selects blocks.
func (s *Spec) Sparse() bool { return s.Selection.On && s.Selection.Policy != dsa.FullName }

// Algorithm returns the selection algorithm; an empty one if none has its name.
func (s *Spec) Algorithm() *dsa.Algorithm {
	if a, err := dsa.AlgorithmNamed(s.Selection.Policy); err == nil {
		return a
	}
	return &dsa.Algorithm{}
}

// Progressive reports whether decode attention runs in microbatches until it reaches its threshold.
func (s *Spec) Progressive() bool { return s.Sparse() && s.Selection.Policy == dsa.PSAName }

// Policy returns the selection algorithm of sparse attention for a model with the given number of
// query heads per KV head.
func (s *Spec) Policy(queries int) (dsa.Policy, *dsa.Algorithm, error) {
	if s.Selection.Per != PerQueryHead {
		queries = 1
	}
	named, err := dsa.AlgorithmNamed(s.Selection.Policy)
	if err != nil {
		return nil, nil, err
	}
	return named.Make(&dsa.Options{
		Blocks: Candidates(s), Epsilon: s.Selection.Epsilon, Microbatch: s.Selection.Microbatch,
		Pipelined: s.Selection.Pipelined,
		HeadStops: s.Selection.Stop == PSAStopHead, Margin: s.Selection.Margin, Queries: queries,
	}), named, nil
}
