package hw

import "math"

// psaKernel models launches of progressive sparse attention's kernel. A CTA reads a list in
// microbatches, decides after each whether to continue, and keeps its state between launches. Lists
// end in different rounds. The remaining lists have the card to themselves, but each CTA is limited
// by its own copies:
//
//	t = launch + sum over rounds of max(round, bytes/rate)
//
// A layer's launches after the first cost `relaunch`. With fewer lists than SMs, clusters of CTAs
// share each list, and round is multiplied by lists/SMs.
type psaKernel struct {
	known                         bool
	heads                         float64
	launch, relaunch, round, rate float64
	sms                           float64
}

func newPSAKernel(p *Profile, m *Model) psaKernel {
	f := &p.PSADecode
	k := psaKernel{known: f.Rate.Set(), heads: float64(m.KVHeads)}
	if !k.known {
		return k
	}
	k.launch, k.relaunch = f.Launch.SI(), f.Relaunch.optional()
	k.round, k.rate = f.Round.SI(), f.Rate.SI()
	k.sms = p.GPU.SMs.SI()
	return k
}

// begins returns the time of one launch before its first round.
func (k *psaKernel) begins(first bool) float64 {
	if first {
		return k.launch
	}
	return k.relaunch
}

// roundOf returns the time of a round with the given lists, including ended ones, and bytes.
func (k *psaKernel) roundOf(lists, bytes float64) float64 {
	least := k.round
	if lists <= k.sms {
		least *= lists / k.sms
	}
	return math.Max(least, bytes/k.rate)
}

// PSASeconds returns the seconds of one layer of progressive sparse attention (PSA, Algorithm 1)
// for the given requests. rounds holds the bytes of each round over all KV heads. It returns false
// if the profile has no figures of PSA.
func (p *Profile) PSASeconds(m *Model, requests int, rounds []float64, launches int) (
	float64, bool) {
	g := newProgressive(p, m, &DeviceOptions{})
	if !g.known {
		return 0, false
	}
	lists, t, all := float64(requests)*g.heads, 0.0, 0.0
	for i := range launches {
		t += g.begins(i == 0)
	}
	for _, bytes := range rounds {
		t += g.roundOf(lists, bytes)
		all += bytes
	}
	return math.Max(t, g.peak.floor(all/g.bytesEach*g.flopsEach, all)), true
}
