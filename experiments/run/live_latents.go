package run

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// noKernel names the feature of a model that no live device implements; "" if all are implemented.
func noKernel(m *llm.Model) string {
	if !m.IsLatent() || !m.IsIndexed() {
		return m.Class()
	}
	var of []string
	plain := m.Class("experts", "window", "weight_bytes_each", "kv_bytes_each")
	for _, c := range []struct {
		has  bool
		name string
	}{
		{plain != "", plain},
		{m.IndexKeyBytes != 2*m.IndexHeadDim, fmt.Sprintf("keys of the indexer of %d bytes "+
			"(index_key_bytes), not fp16's %d", m.IndexKeyBytes, 2*m.IndexHeadDim)},
		{m.IndexEvery > 1, "layers that share a selection (index_every)"},
		{m.TiedEmbeddings, "a head that is the embedding (tied_embeddings)"},
	} {
		if c.has {
			of = append(of, c.name)
		}
	}
	return strings.Join(of, ", ")
}

// checkLatent refuses settings that a live run of a model with latent attention cannot carry out.
func (l *Live) checkLatent(s *sim.Spec, topK int) error {
	switch {
	case l.Weights != "":
		return errors.New("--weights: a model with latent attention runs live with weights drawn " +
			"from the seed; leave it out")
	case l.Record != "":
		return errors.New("--record: a recording holds blocks, an indexer selects tokens; " +
			"leave it out")
	case s.Selection.Policy != dsa.IndexerName || !s.Sparse():
		return refuse("system.preset", s.Selection.Policy,
			`a live run of latent attention goes by the model's indexer: "dsa" or "hisparse"`)
	case s.Hot() && s.Offload.HotRelease == sim.ReleaseShort:
		return refuse("offload.hot_release", s.Offload.HotRelease,
			"is simulated; a live run has \"prefilled\"")
	case s.Hot() && (s.Offload.HotBuffer <= topK || s.Offload.HotBuffer > cuda.SlotsMax):
		return refuse("offload.hot_buffer", s.Offload.HotBuffer,
			fmt.Sprintf("the swap-in kernel wants more slots than index_top_k = %d and at most %d", topK,
				cuda.SlotsMax))
	case s.SparsePrefill():
		return refuse("prefill.attention", s.Prefill.Attention, "the indexer selects in prefill too; "+
			"leave it out")
	case s.CachesPrefixes():
		return refuse("prefix_cache.mode", s.PrefixCache.Mode,
			`a live run of latent attention has none; set prefix_cache.mode = "off"`)
	}
	return nil
}
