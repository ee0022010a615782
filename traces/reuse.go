package traces

import (
	"math"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// KV is what a prefix cache holds: blocks of a model's KV.
type KV struct {
	Model       string `json:"model"`
	TokenBytes  int64  `json:"kv_bytes_token"`
	BlockTokens int    `json:"block_tokens"`

	Tokenizer Tokenizer `json:"-"` // that texts are counted with; "" is Llama2
	Guess     bool      `json:"-"` // the model names no tokenizer
}

// Reuse is what prefix caches would have of a trace's prompts whose requests were served one after
// another, in whole blocks under LRU; sim/prefix counts it.
type Reuse struct {
	KV
	PromptTokens int64     `json:"prompt_tokens"`
	Unbounded    Cached    `json:"unbounded"` // and what it holds in the end
	Capacities   []Cached  `json:"capacities"`
	Curve        [2]Series `json:"curve"` // GiB, share of prompt tokens
	// Sampled is the share of the prompts' parts that are counted, for all; 0: all are.
	Sampled float64 `json:"sampled,omitempty"`
}

// Series are numbers.
type Series []float64

// Cached is what one cache has.
type Cached struct {
	GiB    float64 `json:"gib"`
	Tokens int64   `json:"hit_tokens"`
	Share  float64 `json:"share"` // of prompt tokens
	// Optimum is what a cache of that size would have that knew the requests to come; nil: not known.
	Optimum *int64 `json:"optimum_tokens,omitempty"`
}

// reused counts reuse request by request, from the first that says what it contains: before it
// there is nothing to share.
type reused struct {
	kv     KV
	stack  *prefix.Stack
	before int64 // prompt tokens
}

func (r *reused) add(a *sim.Arrival) {
	switch {
	case r.kv.TokenBytes == 0: // nobody asks
	case r.stack == nil && a.Content == nil:
		r.before += int64(a.Prompt)
	default:
		if r.stack == nil {
			r.stack = prefix.NewStack(r.kv.BlockTokens)
			r.stack.Remember = true
		}
		r.stack.Serve(a.Content, a.Prompt, a.Output)
	}
}

// warnings names what describe estimates and what it leaves out.
func (r *reused) warnings() (w []warn.Warning) {
	if r.stack == nil {
		return nil
	}
	if !r.stack.Remembers() {
		w = append(w, warn.New(warn.TraceContent,
			"the most that a cache can find (Belady) is left "+
				"out: prompts have too many parts in all, as those of a session of thousands of turns").About(
			"reuse"))
	}
	if share := r.stack.Sampled(); share < 1 {
		w = append(w, warn.New(warn.TraceContent, "what prefix caches find is an estimate from a sample "+
			"(SHARDS): prompts have too many different parts; 1 in %g is counted", 1/share).About("reuse"))
	}
	return w
}

// curvePoints are over three decades of capacity up to what is ever stored.
const curvePoints = 91

// describe returns nil where no request says what it contains.
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
	for i, tokens := range r.stack.Optimum(sizes...) { // none of too many turns
		d.Capacities[i].Optimum = &tokens
	}
	for i := range curvePoints {
		blocks := math.Ceil(float64(all) * math.Pow(1000, float64(i)/(curvePoints-1)-1))
		c := of(blocks*block, int64(blocks))
		d.Curve[0], d.Curve[1] = append(d.Curve[0], c.GiB), append(d.Curve[1], c.Share)
	}
	return d
}
