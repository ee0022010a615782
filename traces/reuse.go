package traces

import (
	"math"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces/reuse"
)

// KV is the KV of a prefix cache: blocks of a model.
type KV struct {
	Model       string `json:"model"`
	TokenBytes  int64  `json:"kv_bytes_token"`
	BlockTokens int    `json:"block_tokens"`

	Tokenizer Tokenizer `json:"-"` // for counting texts; "" is Llama2
	Guess     bool      `json:"-"` // the model names no tokenizer
}

// Reuse is the prefix cache reuse of a trace's prompts if requests are served sequentially, in
// whole blocks under LRU (package reuse).
type Reuse struct {
	KV
	PromptTokens int64     `json:"prompt_tokens"`
	Unbounded    Cached    `json:"unbounded"` // unbounded cache, with its final size
	Capacities   []Cached  `json:"capacities"`
	Curve        [2]Series `json:"curve"` // GiB, share of prompt tokens
	// Sampled is the share of prompt pieces in the sample, scaled to all; 0: no sampling.
	Sampled float64 `json:"sampled,omitempty"`
}

// Series are numbers.
type Series []float64

// Cached is the reuse with one cache size.
type Cached struct {
	GiB    float64 `json:"gib"`
	Tokens int64   `json:"hit_tokens"`
	Share  float64 `json:"share"` // of prompt tokens
	// Optimum is the hits of an optimal cache of that size (Belady); nil: unknown.
	Optimum *int64 `json:"optimum_tokens,omitempty"`
}

// reused counts reuse request by request, starting at the first request with content.
type reused struct {
	kv     KV
	stack  *reuse.Stack
	before int64 // prompt tokens
}

func (r *reused) add(a *sim.Arrival) {
	switch {
	case r.kv.TokenBytes == 0: // not requested
	case r.stack == nil && a.Content == nil:
		r.before += int64(a.Prompt)
	default:
		if r.stack == nil {
			r.stack = reuse.NewStack(r.kv.BlockTokens)
			r.stack.Remember = true
		}
		r.stack.Serve(a.Content, a.Prompt, a.Output)
	}
}

// warnings reports estimates and omissions of describe.
func (r *reused) warnings() (w []warn.Warning) {
	if r.stack == nil {
		return nil
	}
	if !r.stack.Remembers() {
		w = append(w, warn.New(warn.TraceContent,
			"the optimum of a cache (Belady) is left out, because the prompts have too many parts in all; "+
				"sessions of thousands of turns do").About(
			"reuse"))
	}
	if share := r.stack.Sampled(); share < 1 {
		w = append(w, warn.New(warn.TraceContent, "hits of prefix caches are estimated from "+
			"a sample (SHARDS), because the prompts have too many different parts; 1 in %g is counted",
			1/share).About("reuse"))
	}
	return w
}

// curvePoints are the points over three decades of capacity, up to all stored blocks.
const curvePoints = 91

// describe returns nil if no request has content.
func (r *reused) describe() *Reuse {
	if r.stack == nil {
		return nil
	}
	d := &Reuse{KV: r.kv, PromptTokens: r.before + r.stack.Prompt()}
	if share := r.stack.Sampled(); share < 1 {
		d.Sampled = share
	}
	block := float64(r.kv.TokenBytes) * float64(r.kv.BlockTokens) / (1 << 30) // GiB
	of := func(gib float64, blocks int64) Cached {
		hits := r.stack.Hits(blocks)
		return Cached{GiB: gib, Tokens: hits, Share: float64(hits) / float64(d.PromptTokens)}
	}
	all := r.stack.Blocks()
	d.Unbounded = of(float64(all)*block, all)
	var sizes []int64
	for _, gib := range []float64{8, 80, 800} {
		sizes = append(sizes, int64(gib/block))
		d.Capacities = append(d.Capacities, of(gib, int64(gib/block)))
	}
	for i, tokens := range r.stack.Optimum(sizes...) { // empty with too many turns
		d.Capacities[i].Optimum = &tokens
	}
	for i := range curvePoints {
		blocks := math.Ceil(float64(all) * math.Pow(1000, float64(i)/(curvePoints-1)-1))
		c := of(blocks*block, int64(blocks))
		d.Curve[0], d.Curve[1] = append(d.Curve[0], c.GiB), append(d.Curve[1], c.Share)
	}
	return d
}
