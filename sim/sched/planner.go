package sched

// Segment is the part of one request's prefill that runs in one iteration: tokens [TokenFrom,
// TokenTo) in layers [LayerFrom, LayerTo).
type Segment struct {
	Req                *Request
	TokenFrom, TokenTo int
	LayerFrom, LayerTo int
}

// Tokens returns the number of tokens of the segment.
func (s *Segment) Tokens() int { return s.TokenTo - s.TokenFrom }

// In reports whether the segment computes a layer.
func (s *Segment) In(layer int) bool { return layer >= s.LayerFrom && layer < s.LayerTo }

// Completes reports whether the prefill ends with this segment, in a model with the given
// number of layers.
func (s *Segment) Completes(layers int) bool {
	return s.TokenTo == s.Req.Target && s.LayerTo == layers
}

// Budget is the remaining budget of an iteration for prefills.
type Budget struct {
	Tokens   int   // remaining of Tmax
	Inject   int64 // remaining of maxInjectToken, in token-layers
	Prefills int   // already in the batch
}

// How prefills are split (Planner.Next).
const (
	Plain        = "plain"
	Chunked      = "chunked"
	Layer        = "layer"
	LayerChunked = "layer-chunked"
)

// Segmented reports whether prefills that are split so run layer by layer and hold only one layer's
// KV.
func Segmented(mode string) bool { return mode == Layer || mode == LayerChunked }

// Planner splits prefills into segments.
type Planner struct {
	Mode      string // Plain, Chunked, Layer or LayerChunked
	Layers    int    // of the model
	Chunk     int    // largest number of tokens of a chunk
	MaxInject int64  // maxInjectToken in token-layers
	// LoadWeight is the weight of a loaded prefix token, relative to a computed token, in the
	// budget of the segment that loads it.
	LoadWeight float64
}

// loads is the budget cost of the prefix loaded by a segment that begins at token from.
func (p *Planner) loads(r *Request, from int) int {
	if from > r.Hit {
		return 0
	}
	return int(p.LoadWeight * float64(r.Hit))
}

// Next returns the next segment of a prefill within the budget, and deducts it from the budget.
// ok is false if no segment fits in this iteration.
//
//   - plain: the whole prompt; it may exceed the budget only as the first prefill of a batch.
//   - chunked: as many tokens as the token budget allows (Sarathi).
//   - layer: all tokens of as many layers as maxInjectToken allows, at least one for the first
//     prefill of a batch (SparseServe §3.4).
//   - layer-chunked: like layer, but a layer that exceeds maxInjectToken is split into chunks of
//     tokens.
func (p *Planner) Next(r *Request, b *Budget) (s Segment, ok bool) {
	switch p.Mode {
	case Plain:
		s, ok = p.plain(r, b)
	case Chunked:
		s, ok = p.chunk(r, b)
	case Layer, LayerChunked:
		s, ok = p.layers(r, b)
	default:
		panic("sched: unknown prefill plan " + p.Mode)
	}
	if ok {
		b.Prefills++
	}
	return s, ok
}

func (p *Planner) plain(r *Request, b *Budget) (Segment, bool) {
	n := r.Target - r.Done
	all := n + p.loads(r, r.Done)
	if all > b.Tokens && b.Prefills > 0 {
		return Segment{}, false
	}
	b.Tokens -= min(all, b.Tokens)
	return Segment{r, r.Done, r.Target, 0, p.Layers}, true
}

func (p *Planner) chunk(r *Request, b *Budget) (Segment, bool) {
	n, loads := min(r.Target-r.Done, b.Tokens, p.Chunk), p.loads(r, r.Done)
	if b.Prefills > 0 || loads == 0 { // loads do not limit the first prefill of a batch
		n = min(n, b.Tokens-loads)
	}
	if n <= 0 {
		return Segment{}, false
	}
	b.Tokens -= min(n+loads, b.Tokens)
	return Segment{r, r.Done, r.Done + n, 0, p.Layers}, true
}

func (p *Planner) layers(r *Request, b *Budget) (Segment, bool) {
	n, loads := int64(r.Target-r.Hit), int64(p.loads(r, r.LayerTokens))
	if p.Mode == LayerChunked && (n > p.MaxInject || r.LayerTokens > 0) {
		from := max(r.Hit, r.LayerTokens)
		n = min(int64(r.Target-from), b.Inject)
		if n <= 0 {
			return Segment{}, false
		}
		b.Inject = max(0, b.Inject-n-loads)
		return Segment{r, from, from + int(n), r.Layer, r.Layer + 1}, true
	}
	n += loads // in each layer
	count := b.Inject / n
	if count == 0 {
		if b.Prefills > 0 {
			return Segment{}, false
		}
		count = 1
	}
	count = min(count, int64(p.Layers-r.Layer))
	b.Inject = max(0, b.Inject-count*n)
	return Segment{r, r.Hit, r.Target, r.Layer, r.Layer + int(count)}, true
}

// Commit records that a segment has run.
func (p *Planner) Commit(s *Segment) {
	r := s.Req
	if !Segmented(p.Mode) {
		r.Done = s.TokenTo
		return
	}
	if s.TokenTo < r.Target {
		r.LayerTokens = s.TokenTo
		return
	}
	r.Layer, r.LayerTokens = s.LayerTo, 0
	if r.Layer == p.Layers {
		r.Done = r.Target
	}
}
