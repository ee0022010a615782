package hw

import (
	"cmp"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim"
)

// Selected is the cost of a layer without its linears if an indexer selects the latents that
// attention reads (DeepSeek sparse attention), from measured modules of an engine.
type Selected struct {
	// Prefill: per token of a batch, for rope, quantisation and copies.
	Token Figure `toml:"token,omitempty" dim:"time,optional"`
	// one wave of CTAs, each for one query and 64 heads, and the rate of its attention
	Wave Figure `toml:"wave,omitempty" dim:"time,optional"`
	Rate Figure `toml:"rate,omitempty" dim:"compute,optional" by:"peak"`
	// rate of the indexer's scores and top-k
	Logits Figure `toml:"logits,omitempty" dim:"compute,optional" by:"peak"`

	// Decode: the small kernels of a layer, and those of its indexer.
	Launch      Figure `toml:"launch,omitempty" dim:"time,optional"`
	IndexLaunch Figure `toml:"index_launch,omitempty" dim:"time,optional"`
	// rate of reading the index keys of all contexts, top-k included
	Keys Figure `toml:"keys,omitempty" dim:"rate,optional" by:"hbm"`
	// Query is attention of one query and 64 heads to FP8 latents, also for prefill with fewer heads.
	Query Figure `toml:"query,omitempty" dim:"time,optional"`
	// Row is the time of a wave of queries per 16-bit latent.
	Row Figure `toml:"row,omitempty" dim:"time,optional"`
}

// selected prices Selected for one model:
//
//	prefill   token q + sum over waves (wave + rows FLOPs of CTAs / rate), or q query
//	indexer   pairs FLOPs / logits
//	decode    launch + q tiles query, or launch + ceil(q tiles / CTAs) rows row
//	indexer   index_launch + keys bytes / keys
//
// with q queries, a GPU's heads in tiles of 64, and rows the latents that a query attends to. If a
// GPU has fewer than 32 heads and latents are FP8, the decode kernel also serves prefill.
type selected struct {
	fp8, few             bool // FP8 latents; fewer than 32 heads
	tiles, ctas          float64
	token, wave, row     float64 // row: of a wave in prefill, s
	query, decodeRow     float64
	launch, indexLaunch  float64
	keyBytes, keys       float64
	pair                 float64 // s
	topK                 float64
	peak                 peak
	peak8                float64 // of FP8 arithmetic, FLOP/s
	flops, bytes, scored float64 // of a query and row; of a row; of a pair of query and key
}

// fewHeads is the number of heads per GPU from which vLLM uses the FlashMLA prefill kernel.
const fewHeads = 32

// newSelected returns nil if the kernels have no such figures or the model has no indexer.
func newSelected(p *Profile, m *Model) *selected {
	f := &p.Selected
	if !f.Logits.Set() || !m.IsIndexed() || !m.IsLatent() {
		return nil
	}
	each := float64(2*m.LatentDim() + 2*m.KVRank)
	s := &selected{
		fp8: m.KVBytesEach == 1, few: m.QHeads < fewHeads,
		tiles: math.Ceil(float64(m.QHeads) / tileRows), ctas: p.Paged.CTAs.SI(),
		token: f.Token.SI(), wave: f.Wave.SI(), query: f.Query.SI(), decodeRow: f.Row.SI(),
		launch: f.Launch.SI(), indexLaunch: f.IndexLaunch.SI(), keyBytes: float64(m.IndexKeyBytes),
		keys: f.Keys.SI(), topK: float64(m.IndexTopK), peak: p.peak(),
		peak8: p.peakFP8(),
		flops: float64(m.QHeads) * each, bytes: float64(m.LayerKVBytesPerToken()),
		scored: 2 * float64(m.IndexHeads*m.IndexHeadDim),
	}
	s.row = s.ctas * tileRows * each / f.Rate.SI()
	s.pair = s.scored / f.Logits.SI()
	return s
}

// rows returns the mean number of latents that a query of a chunk attends to.
func (s *selected) rows(span sim.Span) float64 {
	a := prefillAttention{window: s.topK}
	return a.keys(span)
}

// prefill returns the seconds of chunks' attention and of the indexer's scores for them.
func (s *selected) prefill(spans []sim.Span) (attention, index float64) {
	var queries, rows, pairs float64
	for _, span := range spans {
		q := max(0, float64(span.Query))
		queries += q
		rows += q * s.rows(span)
		pairs += q*float64(span.Prefix) + q*q/2
	}
	if queries == 0 {
		return 0, 0
	}
	if s.fp8 && s.few {
		attention = queries * s.query
	} else {
		attention = s.waves(spans)
	}
	floor := s.peak.floor(rows*s.flops, queries*s.bytes)
	return max(attention+queries*s.token, floor), max(pairs*s.pair, pairs*s.scored/s.peak8)
}

// waves returns the seconds of prefill's waves. Each query of a chunk costs the chunk's mean.
// Chunks with the most rows come first, so a wave of several chunks takes as long as its longest,
// and more work never takes less time.
func (s *selected) waves(spans []sim.Span) (seconds float64) {
	longest := slices.Clone(spans)
	slices.SortStableFunc(longest, func(a, b sim.Span) int {
		return cmp.Compare(s.rows(b), s.rows(a))
	})
	tiles, done := 0.0, 0.0
	for _, span := range longest {
		tiles += max(0, float64(span.Query)) * s.tiles
		if all := math.Ceil(tiles / s.ctas); all > done {
			seconds += (all - done) * (s.wave + s.rows(span)*s.row)
			done = all
		}
	}
	return seconds
}

// decode returns the seconds of decodes' attention to rows rows, summed over requests.
func (s *selected) decode(rows, requests, queries float64) float64 {
	if rows <= 0 {
		return 0
	}
	t, requests := s.launch, max(1, requests)
	if s.fp8 {
		t += requests * queries * s.tiles * s.query
	} else {
		t += math.Ceil(requests*queries*s.tiles/s.ctas) * rows / requests * s.decodeRow
	}
	return max(t, s.peak.floor(rows*queries*s.flops, rows*s.bytes))
}

// scores returns the seconds in which an indexer scores tokens tokens of decodes' contexts and
// selects the best.
func (s *selected) scores(tokens float64) float64 {
	if tokens <= 0 {
		return 0
	}
	return s.indexLaunch + tokens*s.keyBytes/s.keys
}

// ModuleLinears returns the linears of a layer's attention and of its indexer, in seconds.
func (p *Profile) ModuleLinears(m *Model, tokens int) float64 {
	g := newGEMMOf(p, m, append(m.attentionMatrices(), m.indexerMatrices()...),
		float64(m.WeightBytesEach))
	t, _ := g.of(float64(tokens))
	return t
}

// SelectedSeconds returns the seconds of attention and indexer in one layer, by the Selected
// figures.
func (p *Profile) SelectedSeconds(m *Model, w *sim.Work) float64 {
	s := newSelected(p, m)
	attention, index := s.prefill(w.Prefill)
	rows, requests := float64(w.BoundedTokens), float64(w.Decodes)
	return attention + index + s.decode(rows, requests, float64(1+w.Drafts)) +
		s.scores(float64(w.DecodeTokens))
}
