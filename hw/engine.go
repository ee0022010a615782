package hw

import (
	"cmp"
	"embed"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

//go:embed engines/*.toml
var engineFiles embed.FS

// Engine describes a serving engine: its host time, how it launches kernels, and its defaults. It
// is a file of engines/.
type Engine struct {
	Name  string `toml:"name" want:"a name"`
	Title string `toml:"title"`
	// From names the engine whose keys hold if this file does not set them; empty: the file sets all.
	From string `toml:"from,omitempty"`
	// Kernels is the kernel library: a key of a card's [kernels].
	Kernels string `toml:"kernels" want:"the library that computes: sparseserve, fa2 or fa3"`
	// Program is the server that plans write a command for: vllm or sglang; empty: none.
	Program string `toml:"program,omitempty"`
	// IndexedKV is the system.kv_dtype of models with an indexer on NVIDIA's cards with FP4 tensor
	// cores, if a configuration leaves it at auto; empty: the checkpoint's, as on other cards.
	IndexedKV string         `toml:"indexed_kv,omitempty" values:"fp8"`
	Defaults  EngineDefaults `toml:"defaults"`
	// Batch overrides batch limits by card and use; the first matching rule holds.
	Batch []BatchRule `toml:"batch,omitempty"`

	EngineCosts
}

// EngineCosts is the engine's own time, on the host and between kernels.
type EngineCosts struct {
	// PlanAhead plans and launches a step while the step before still runs (vLLM's asynchronous
	// scheduling). Host.Step, Request and Token then overlap with the GPU. When a request arrives
	// during a step, the next one is already planned, so it waits for both.
	PlanAhead bool `toml:"plan_ahead,omitempty"`
	// SerialHost is true if the host's time does not overlap with the GPU although steps are planned
	// ahead, because the threads that plan and launch share one Python interpreter.
	SerialHost bool `toml:"serial_host,omitempty"`
	// LoadsInTurn loads the prefix of a prefill chunk as any other blocks of a layer, once its slots
	// are free. Otherwise its loads overlap the layer before.
	LoadsInTurn bool `toml:"loads_in_turn,omitempty"`
	// FusedShared runs the shared expert of models like DeepSeek-V3 in the kernel of routed experts.
	FusedShared bool `toml:"fused_shared,omitempty"`
	// LinearGrid rounds the rows of linears up to a multiple of this number of tokens, if there are
	// more tokens; 0 or 1: no rounding.
	LinearGrid    int           `toml:"linear_grid,omitempty" range:">= 0, <= 4096"`
	Host          Host          `toml:"host"`
	FrontEnd      FrontEnd      `toml:"front_end,omitempty"`
	Graphs        Graphs        `toml:"graphs,omitempty"`
	Static        Static        `toml:"static,omitempty"`
	LayerOverhead []OverheadRow `toml:"layer_overhead,omitempty" unique:"attention lookup chunk"`
}

// FrontEnd is the time outside the scheduler's loop. TTFT and end-to-end latency include it.
type FrontEnd struct {
	// from the client's request to the scheduler, without tokenising
	Request Figure `toml:"request,omitempty" dim:"time,optional"`
	// per prompt token: one thread tokenises the prompts in turn
	Token Figure `toml:"token,omitempty" dim:"time,optional"`
	// from the end of a step to the client's token
	Reply Figure `toml:"reply,omitempty" dim:"time,optional"`
}

// Graphs are the engine's CUDA graphs. A batch of at most the largest size is padded to the next
// size; larger batches run kernel by kernel.
type Graphs struct {
	Tokens []int `toml:"tokens,omitempty" rising:"."` // captured sizes
	// Limits are the largest sizes by card; the first matching limit holds.
	Limits []GraphLimit `toml:"limit,omitempty"`
	// Decodes captures batches without prefills only.
	Decodes bool `toml:"decodes,omitempty"`
	// Prefills are the captured sizes of batches with prefills, where Decodes is set.
	Prefills []int `toml:"prefills,omitempty" rising:"."`
	// LatentPrefills is the largest of them for models with latent attention; 0: all.
	LatentPrefills int    `toml:"latent_prefills,omitempty" range:">= 0, <= 65536"`
	Source         string `toml:"source,omitempty"`
}

// GraphLimit is the largest CUDA graph on cards of at least MinHBMGiB.
type GraphLimit struct {
	MinHBMGiB float64 `toml:"min_hbm_gib,omitempty"`
	Few       int     `toml:"few"`  // with fewer than fewGPUs GPUs
	Most      int     `toml:"most"` // with more
}

const fewGPUs = 4

// Static is how the engine divides HBM if utilisation covers weights and KV alone, as SGLang's
// mem_fraction_static: activations and logits lie in the rest. If Base is set, utilisation follows
// from the card, in MiB:
//
//	rest = base + token x tokens of a step + row x largest graph + gpu x GPUs +
//	       graph x graphs of prefills
//
// and at least Least on cards with more than 60 GiB.
type Static struct {
	On     bool    `toml:"on,omitempty"`
	Base   float64 `toml:"base_mib,omitempty" range:">= 0"`
	Token  float64 `toml:"token_mib,omitempty" range:">= 0"`
	Row    float64 `toml:"row_mib,omitempty" range:">= 0"`
	GPU    float64 `toml:"gpu_mib,omitempty" range:">= 0"`
	Graph  float64 `toml:"graph_mib,omitempty" range:">= 0"`
	Least  float64 `toml:"least_mib,omitempty" range:">= 0"`
	Source string  `toml:"source,omitempty"`
}

// Utilisation returns the share of a card's HBM that the engine takes for weights and KV with the
// given tokens of a step and GPUs. ok is false if it does not depend on the card.
func (e *Engine) Utilisation(c *Card, tokens, gpus int) (share float64, ok bool) {
	s := &e.Static
	if c == nil || s.Base == 0 {
		return 0, false
	}
	hbm, rows := c.GPU.HBMSize.SI(), float64(e.Graphs.Of(gpus, &c.GPU).largest())
	graphs, _ := slices.BinarySearch(e.Graphs.Prefills, tokens+1)
	rest := s.Base + s.Token*float64(max(tokens, 2048)) + s.Row*rows + s.GPU*float64(gpus) +
		s.Graph*float64(graphs)
	if hbm > 60<<30 {
		rest = max(rest, s.Least)
	}
	rest *= 1 << 20
	return max(0.1, math.Round(1000*(1-rest/hbm))/1000), true
}

// EngineDefaults are the keys of a system that the engine sets: its scheduler and limits.
type EngineDefaults struct {
	Scheduler   string  `toml:"scheduler"`
	Utilisation float64 `toml:"utilisation"`
	BlockTokens int     `toml:"block_tokens"`
	MaxTokens   int     `toml:"max_tokens"`
	MaxRequests int     `toml:"max_requests"`
	Watermark   float64 `toml:"watermark"`
	// Sampling is the value of system.sampling: random, top-p or model.
	Sampling string `toml:"sampling"`
	Prefill  struct {
		ChunkTokens int `toml:"chunk_tokens"`
		// OverLength is truncate where an engine file does not set it.
		OverLength string `toml:"over_length"`
	} `toml:"prefill"`
	PrefixCache struct {
		// Mode is off where an engine file does not set it.
		Mode string `toml:"mode"`
		// Overlap is layers where an engine file does not set it.
		Overlap string `toml:"overlap,omitempty"`
	} `toml:"prefix_cache"`
}

// BatchRule is an engine's default batch limits on some cards, for one use.
type BatchRule struct {
	// Use is as system.use; empty: either.
	Use string `toml:"use,omitempty" values:"server offline"`
	// MinHBMGiB is the minimum HBM of a matching card, in GiB; 0: any.
	MinHBMGiB float64 `toml:"min_hbm_gib,omitempty"`
	// Not excludes cards whose name contains it.
	Not         string `toml:"not,omitempty"`
	MaxTokens   int    `toml:"max_tokens" range:">= 1"` // tokens in a step
	MaxRequests int    `toml:"max_requests" range:">= 1"`
}

func (r *BatchRule) fits(c *Card, use string) bool {
	size := c.GPU.HBMSize.SI() / (1 << 30)
	return (r.Use == "" || r.Use == use) && size >= r.MinHBMGiB &&
		(r.Not == "" || !strings.Contains(strings.ToLower(c.Name), r.Not))
}

// DefaultsOn returns the engine's defaults on a card for a use; c is nil for an unknown card.
func (e *Engine) DefaultsOn(c *Card, use string) EngineDefaults {
	d := e.Defaults
	for i := range e.Batch {
		if r := &e.Batch[i]; c != nil && r.fits(c, use) {
			d.MaxTokens, d.MaxRequests, d.Prefill.ChunkTokens = r.MaxTokens, r.MaxRequests, r.MaxTokens
			break
		}
	}
	return d
}

// EngineNames returns the names of the built-in engines.
func EngineNames() []string { return builtin.Names(engineFiles, "engines") }

// LoadEngine returns a built-in engine by name, or reads an engine file.
func LoadEngine(nameOrPath string) (*Engine, error) {
	file, text, err := builtin.Read("engine", engineFiles, "engines", nameOrPath, "")
	if err != nil {
		return nil, err
	}
	e, err := builtin.Decode[Engine](file, text)
	if err != nil {
		return nil, err
	}
	if e.From != "" {
		base, err := LoadEngine(e.From)
		switch {
		case err != nil:
			return nil, tomlfile.Place(file, text, tomlfile.Wrong("from", "%w", err))
		case base.From != "":
			return nil, tomlfile.Place(file, text,
				tomlfile.Wrong("from", "want an engine that sets all keys itself"))
		}
		if err := tomlfile.Decode(file, text, base); err != nil {
			return nil, err
		}
		e = base
	}
	d := &e.Defaults
	d.PrefixCache.Mode = cmp.Or(d.PrefixCache.Mode, "off")
	d.PrefixCache.Overlap = cmp.Or(d.PrefixCache.Overlap, "layers")
	d.Prefill.OverLength = cmp.Or(d.Prefill.OverLength, "truncate")
	return e, tomlfile.Place(file, text, e.Validate())
}

func (e *Engine) Validate() error { return cmp.Or(check(e), e.EngineCosts.validate()) }

// Uses lists the ways to start an engine: vLLM's UsageContext OPENAI_API_SERVER and LLM_CLASS.
func Uses() []string { return []string{"server", "offline"} }

func (e *EngineCosts) validate() error { return checkOverhead(e.LayerOverhead) }

// LinearRows returns the rows of linears for the given tokens.
func (e *EngineCosts) LinearRows(tokens int) int {
	g := e.LinearGrid
	if tokens <= g || g < 2 {
		return tokens
	}
	return (tokens + g - 1) / g * g
}

// Of returns the graphs with the given number of GPUs of a kind.
func (g *Graphs) Of(gpus int, gpu *GPU) Graphs {
	some := *g
	for _, l := range g.Limits {
		if gpu.HBMSize.SI() < l.MinHBMGiB*(1<<30) {
			continue
		}
		most := l.Most
		if gpus < fewGPUs {
			most = l.Few
		}
		some.Tokens = slices.DeleteFunc(slices.Clone(g.Tokens), func(n int) bool { return n > most })
		break
	}
	return some
}

// largest returns the most tokens of a graph.
func (g Graphs) largest() int {
	if n := len(g.Tokens); n > 0 {
		return g.Tokens[n-1]
	}
	return 0
}

// onHost returns the engine's costs on a host of the given speed.
func (e EngineCosts) onHost(speed Figure) EngineCosts {
	x := speed.SI()
	if x == 1 {
		return e
	}
	why := "a host of another speed"
	eachFigure(reflect.ValueOf(&e).Elem(), func(_ string, f *Figure, tag reflect.StructTag) {
		switch dim := tag.Get("dim"); {
		case !f.Set() || tag.Get("on") == "gpu":
		case dim == "rate,optional" || dim == "rate":
			f.scale(x, why)
		default:
			f.scale(1/x, why)
		}
	})
	return e
}

// Host is the serving framework's CPU time on the critical path.
type Host struct {
	// planning, launches, sampling and bookkeeping, per step
	Step Figure `toml:"step" dim:"time"`
	// additional time of a step per request
	Request Figure `toml:"request,omitempty" dim:"time,optional"`
	// Token is the additional time per prompt token, which is copied and looked up.
	Token Figure `toml:"token,omitempty" dim:"time,optional"`
	// round trip between GPU and CPU from selection to loading, per layer
	LayerSync Figure `toml:"layer_sync" dim:"time"`
	// LayerRate is the rate of a layer's lists: 4 bytes to the host and 4 bytes back per selected
	// block and KV head.
	LayerRate Figure `toml:"layer_rate,omitempty" dim:"rate,optional"`
	// ContinueLatency is the time from the end of a launch of progressive attention to the start of
	// the next one, which depends on its result; not set: LayerSync.
	ContinueLatency Figure `toml:"continue_latency,omitempty" dim:"time,optional"`
	// SparseLayer is the CPU time to launch a layer with block selection, which no CUDA graph holds.
	// It overlaps the GPU's work and is a lower bound of the layer's time.
	SparseLayer Figure `toml:"sparse_layer,omitempty" dim:"time,optional"`
	// EagerLayer is the same bound for a layer of any batch without a CUDA graph
	// (EngineCosts.Graphs).
	EagerLayer Figure `toml:"eager_layer,omitempty" dim:"time,optional"`
}
