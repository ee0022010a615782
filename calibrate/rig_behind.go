package calibrate

import (
	"slices"

	"sparseserve/cuda"
)

// behindLayers are the layers of one sample: linears take several times as long as
// what comes behind them, and vary by most of a percent.
const behindLayers = 32

// setupBehind readies the first two linears of decodes in some layers, and between
// the two what a layer with offloading has there. Their weights are twice the L2,
// so that tables, lists and the kernels themselves come from HBM, as they do in a
// decode step.
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
	var between []cuda.Operation
	if p.Probe != probeBehindNone {
		missing := int64(0)
		if p.Probe == probeBehindTable || p.Probe == probeBehindMissing {
			missing = p.At("missing_blocks")
		}
		l, err := g.lookupOf(s, p, missing)
		if err != nil {
			return nil, err
		}
		lists, err := g.noteWords(l.list)
		if err != nil {
			return nil, err
		}
		between, verify = append(between, &cuda.CarryArgs{Dst: l.args.List, Src: lists, Bytes: int64(4 * len(l.list))}), both(verify, l.verify)
		listed := int64(len(l.list))
		switch p.Probe {
		case probeBehindTable:
			between = append(between, &l.table)
		case probeBehindLookup:
			between = append(between, &l.args, &l.gather)
		case probeBehindMissing:
			between = append(between, &l.table, &l.args, &l.gather)
		case probeBehindGather:
			gather, _, err := g.countedLoad(s, listed, 0)
			if err != nil {
				return nil, err
			}
			between = append(between, gather)
		case probeBehindLoad:
			gather, loaded, err := g.countedLoad(s, listed, p.At("blocks"))
			if err != nil {
				return nil, err
			}
			between, verify = append(between, gather), both(verify, loaded)
		case probeBehindWrite:
			write, right, err := g.kvWriteOp(s, m, p.At("requests"))
			if err != nil {
				return nil, err
			}
			between, verify = append(between, write), both(verify, right)
		}
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
