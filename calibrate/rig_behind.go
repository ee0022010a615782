package calibrate

import (
	"slices"

	"sparseserve/cuda"
)

// behindLayers are the layers of one sample: linears take several times as long as
// what comes behind them, and vary by most of a percent.
const behindLayers = 32

// setupBehind readies the first two linears of decodes in some layers, and between
// the two the kernel that brings a layer's lists up and, where the point has blocks,
// their gather. The weights are twice the L2, so that lists and the kernels themselves
// come from HBM, as they do in a decode step.
func (g *rig) setupBehind(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	linears, verify, err := g.linearsOp(s, m, p.At("requests"))
	if err != nil {
		return nil, err
	}
	linears = linears[:2]
	listed := p.At("requests") * int64(m.KVHeads) * liveBudget / blockTokens
	lists, err := g.noteWords(make([]int32, listed))
	if err != nil {
		return nil, err
	}
	up, err := g.poisoned(s, 4*listed)
	if err != nil {
		return nil, err
	}
	between := []cuda.Operation{&cuda.CarryArgs{Dst: up, Src: lists, Bytes: 4 * listed}}
	if p.Probe == probeBehindLoad {
		gather, loaded, err := g.countedLoad(s, listed, p.At("blocks"))
		if err != nil {
			return nil, err
		}
		between, verify = append(between, gather), both(verify, loaded)
	}
	t := &setup{bench: cuda.Bench{Clock: cuda.EventClock}, settle: following, verify: verify, each: func(sample, _ float64) float64 { return sample / behindLayers }}
	for range behindLayers {
		t.bench.Calls = append(t.bench.Calls, slices.Insert(slices.Clone(linears), 1, between...)...)
	}
	return t, nil
}

// countedLoad is a gather that could load a layer's lists and takes from the GPU how
// many blocks of 16 KiB it does, with its check.
func (g *rig) countedLoad(s *cuda.Session, listed, blocks int64) (*cuda.FlashH2DArgs, func(*cuda.Session) error, error) {
	op, verify, err := g.loadOp(s, probeLoadFlash, max(1, blocks), queuedBlock, basePool*mib)
	if err != nil {
		return nil, nil, err
	}
	a := op.(*cuda.FlashH2DArgs)
	a.Count = listed // of addresses the kernel reads no more than it is told
	a.Counted, err = upload(g, s, []int64{blocks})
	return a, verify, err
}

// queuedBlock is a block's bytes.
const queuedBlock = 16 * kib
