package calibrate

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/hw"
)

// What a layer takes in its row shows in steps of a live server that are not split
// into phases, over what its kernels take, each measured alone. The model serves the
// same requests as the live server did, and prices each step without gaps: what is
// left is theirs.
//
//	gap = mean over points of (t - t of the model)/layers
//
// It has what the laws of these kernels are off by, too.

// gapServers are the servers that gaps are seen in, by their points' probe.
var gapServers = []gapServer{
	{probeLiveDense, hw.GapDense, ""},
	{probeLiveHeld, hw.GapSparse, ""},
	{probeLiveLookup, hw.GapSparse, hw.GapOfGPU},
	{probeLiveHeldPSA, hw.GapPSA, ""},
	{probeLiveLookupPSA, hw.GapPSA, hw.GapOfGPU},
}

type gapServer struct {
	probe             string
	attention, lookup string
}

// leastGap stands for gaps that come out as none.
const leastGap = 1e-9

// gapsHeldOut are batches that no gap is fitted to.
var gapsHeldOut = []int64{3, 6, 12}

// fitGaps adds gaps to a profile that is complete but for them, one a kind of layer.
// Where none was measured there is none. What could not be had is said.
func fitGaps(s *Samples, p *hw.Profile, from source) (models []model, said []string) {
	p.Gaps = []hw.GapRow{ // without a cost, so that each server has its device
		{Attention: hw.GapSparse, Lookup: hw.GapOfGPU, Figure: from.figure(leastGap*1e6, "us", "none yet")},
	}
	bare := *p
	p.Gaps = nil
	for _, k := range gapServers {
		all := s.of(k.probe)
		if len(all) == 0 {
			continue
		}
		priced, err := servedBy(&bare, all)
		if err != nil {
			said = append(said, fmt.Sprintf("%s are left out: %v", k.name(), err))
			continue
		}
		all = all.where(func(at datum) bool { return priced[at.Key()] > 0 })
		fit, held := all.where(func(at datum) bool { return !heldOut(at) }), all.where(heldOut)
		if len(fit) == 0 {
			continue
		}
		var over []float64
		for _, at := range fit {
			over = append(over, (at.seconds-priced[at.Key()])/float64(at.At("layers")))
		}
		p.Gaps = append(p.Gaps, hw.GapRow{Attention: k.attention, Lookup: k.lookup,
			Figure: from.figure(max(stat.Mean(over, nil), leastGap)*1e6, "us", k.what())})
		models = append(models, model{name: k.name(), fit: fit, held: held, draw: picture{x: requests, xLabel: "requests"},
			price: func(p *hw.Profile, at datum) float64 {
				return priced[at.Key()] + float64(at.At("layers"))*p.GapSeconds(k.attention, k.lookup)
			}})
	}
	return models, said
}

// heldOut says whether no gap is fitted to a point.
func heldOut(at datum) bool { return slices.Contains(gapsHeldOut, at.At("requests")) }

func (k *gapServer) what() string {
	if k.lookup != "" {
		return "a layer of decodes in the live loop whose lists the GPU looks up, over its kernels measured one by one"
	}
	return "a layer of decodes in the live loop, over its kernels measured one by one"
}

func (k *gapServer) name() string {
	if k.lookup != "" {
		return "gaps." + k.attention + "_" + k.lookup
	}
	return "gaps." + k.attention
}
