package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// psaKernel prices launches of progressive sparse attention's kernel. A CTA takes a list,
// microbatch by microbatch, decides after each whether to go on, and keeps its
// state from launch to launch. Lists end in different rounds, and those that go on have
// the card to themselves but go no faster than a CTA's own copies come:
//
//	t = launch + lists per_head + sum over rounds of max(round, bytes/rate)
//
// with `relaunch` for all but a layer's first launch. Where there are fewer lists than
// cluster_lists, clusters of CTAs share each: round is then shorter by lists/cluster_lists.
type psaKernel struct {
	known                                  bool
	heads                                  float64
	launch, relaunch, perHead, round, rate float64
	fewLists                               float64
}

func newPSAKernel(p *Profile, m *Model) psaKernel {
	f := &p.PSADecode
	k := psaKernel{known: f.Rate.Set(), heads: float64(m.KVHeads)}
	if !k.known {
		return k
	}
	k.launch, k.relaunch, k.perHead = f.Launch.SI(), f.Relaunch.optional(), f.PerHead.optional()
	k.round, k.rate = f.Round.SI(), f.Rate.SI()
	k.fewLists = f.ClusterLists.optional()
	return k
}

// begins is the time of one launch over so many lists before its first round.
func (k *psaKernel) begins(lists float64, first bool) float64 {
	t := k.relaunch
	if first {
		t = k.launch
	}
	return t + lists*k.perHead
}

// roundOf is the time of a round in which so many lists, ended ones included, attend to so
// many bytes.
func (k *psaKernel) roundOf(lists, bytes float64) float64 {
	least := k.round
	if lists <= k.fewLists {
		least *= lists / k.fewLists
	}
	return math.Max(least, bytes/k.rate)
}

// PSADecodeSeconds returns the time in which one layer attends to so many
// blocks of each KV head of each request by progressive sparse attention (PSA,
// Algorithm 1), in rounds of a microbatch and so many launches. It is false
// where the profile has no figures of PSA.
func (p *Profile) PSADecodeSeconds(m *Model, requests, blocks, blockTokens, microbatch, launches int) (t float64, known bool) {
	k := newPSAKernel(p, m)
	if !k.known || requests < 1 || blocks < 1 || microbatch < 1 {
		return 0, k.known
	}
	tokens := float64(requests) * float64(blocks) * float64(blockTokens)
	bytes := tokens * float64(m.LayerKVBytesPerToken())
	rounds := math.Ceil(float64(blocks) / float64(microbatch))
	for i := range max(launches, 1) {
		t += k.begins(float64(requests)*k.heads, i == 0)
	}
	t += rounds * k.roundOf(float64(requests)*k.heads, bytes/rounds)
	return math.Max(t, p.peak().floor(4*float64(m.QHeads*m.HeadDim)*tokens, bytes)), true
}

// PSARoundsSeconds returns the time in which one layer attends to lists of which
// so many reach each round of a microbatch of blocks, in one launch. It is false where the
// profile has no figures of PSA.
func (p *Profile) PSARoundsSeconds(m *Model, requests, blockTokens, microbatch int, reach []int) (t float64, known bool) {
	g := newProgressive(p, m, &DeviceOptions{Microbatch: microbatch})
	if !g.known || requests < 1 || len(reach) == 0 {
		return 0, g.known
	}
	rounds := make([]sim.Round, len(reach))
	for i, n := range reach {
		rounds[i].Tokens = int64(n) * int64(microbatch) * int64(blockTokens) / int64(m.KVHeads)
	}
	return g.launchSeconds(rounds, float64(requests), true), true
}
