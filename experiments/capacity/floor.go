package capacity

import (
	"fmt"
	"sync"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/traces"
)

// lengths are the token counts of a run's requests. A trace may end earlier.
type lengths struct {
	of    []length
	turns bool // follow one another: which there are depends on how fast they are served
}

type length struct {
	prompt, output int
	cached         bool // part of the prompt is, or may be
}

// output returns the output tokens of all requests.
func (l *lengths) output() (tokens int) {
	for _, r := range l.of {
		tokens += r.output
	}
	return tokens
}

// traffic caches the request lengths of a search's workloads: for one seed they are the same at
// every rate and for every server. It is safe for concurrent use.
type traffic struct {
	mu    sync.Mutex
	known map[string]*lengths
}

// lengths returns the request lengths of a point.
func (t *traffic) lengths(p *config.Point, tokenizer string) (*lengths, error) {
	w := p.Workload
	if w.Rate > 0 {
		w.Rate = 1
	}
	key := fmt.Sprintf("%d %s %+v", p.Seed, tokenizer, w)
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.known[key]; l != nil {
		return l, nil
	}
	stream, err := traces.Open(w, p.Seed, traces.Tokenizer(tokenizer))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	l := &lengths{turns: stream.HasTurns()}
	for !l.turns && len(l.of) < w.Requests {
		a, ok, err := stream.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		l.of = append(l.of, length{a.Prompt, a.Output, a.Cached > 0 || a.Content != nil})
	}
	if t.known == nil {
		t.known = map[string]*lengths{}
	}
	t.known[key] = l
	return l, nil
}

// floor is a lower bound on the time to the first token of a prompt, for any number of replicas:
// its FLOPs at the peak of the card, which no step exceeds (law 10).
//
//	t = L (2 W P + 4 d H P^2 / 2) / peak
//
// W are the weights of a layer's linears, H the query heads of size d and L the layers of a GPU's
// part of the model, and P the tokens.
type floor struct {
	model   hw.Model
	peak    float64 // FLOP/s
	longest int     // tokens that a prompt is cut to, or refused beyond
}

// newFloor returns the floor of a point. ok is false if prompts may need less: the bound is not
// derived for other than plain models and does not hold for sparse prefill.
func newFloor(p *config.Point) (f floor, ok bool, err error) {
	if f.model, err = p.Shard(); err != nil {
		return f, false, err
	}
	s := &p.System
	if !f.model.Plain() || s.SparsePrefill() || p.Workload.PrefixHit > 0 {
		return f, false, nil
	}
	machine, err := p.Machine()
	if err != nil {
		return f, false, err
	}
	f.peak, f.longest = machine.GPU.PeakFP16.SI(), f.model.MaxContext
	if s.Prefill.MaxPromptTokens > 0 {
		f.longest = min(f.longest, s.Prefill.MaxPromptTokens)
	}
	return f, true, nil
}

// seconds returns the floor of one request.
func (f *floor) seconds(r length) float64 {
	if r.cached {
		return 0
	}
	prompt := float64(max(0, min(r.prompt, f.longest, f.model.MaxContext-r.output)))
	flops := 2*float64(f.model.LayerLinears())*prompt +
		4*float64(f.model.QHeads*f.model.HeadDim)*prompt*prompt/2
	return float64(f.model.Layers) * flops / f.peak
}

// late names the bound that a run misses by the floors of its requests alone, even if the maximum
// permitted number is rejected; "" if it may hold all bounds.
func (f *floor) late(l *lengths, slo limits) string {
	for _, b := range slo.bounds {
		if b.Name != "ttft" && b.Name != "e2e" || b.Stat == "mean" {
			continue
		}
		most, over := float64(len(l.of)), 0
		for _, r := range l.of {
			if f.seconds(r) > b.Limit*(1+roundingError) {
				over++
			}
		}
		refused := slo.missShare * most
		switch {
		case slo.requests && float64(over) > refused:
			return "requests"
		case !slo.requests && float64(over) > newTally(b, most).spare+refused:
			return b.Name
		}
	}
	return ""
}
