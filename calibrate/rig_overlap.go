package calibrate

import (
	"errors"
	"fmt"
	"slices"

	"sparseserve/cuda"
	"sparseserve/hw"
)

// Compute with transfers beside it.

// besideRepeats are the layers of one sample, so that it spans several
// transfers.
const besideRepeats = 16

// layerOp readies the linears and the attention of one chunk in one layer.
func (g *rig) layerOp(s *cuda.Session, m *hw.Model, tokens, prefix int64) ([]cuda.Operation, func(*cuda.Session) error, error) {
	calls, verify, err := g.linearsOp(s, m, tokens)
	if err != nil {
		return nil, nil, err
	}
	more, verifyMore, err := g.prefillOp(s, m, []chunkSpan{{tokens, prefix}})
	return append(calls, more...), both(verify, verifyMore), err
}

func both(a, b func(*cuda.Session) error) func(*cuda.Session) error {
	return func(s *cuda.Session) error {
		if err := a(s); err != nil {
			return err
		}
		return b(s)
	}
}

// setupBeside readies compute while a transfer of many 16 KiB blocks runs
// without pause.
func (g *rig) setupBeside(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	t, err := g.layersOp(s, m, p.At("tokens"), 0)
	if err != nil {
		return nil, err
	}
	const count, block = 8192, 16 * kib
	var op cuda.Operation
	var moved func(*cuda.Session) error
	switch p.Probe {
	case probeBesideNone:
		return t, nil
	case probeBesideSave:
		op, moved, err = g.saveOp(s, probeSaveGPU, count, block, basePool*mib, 0)
	case probeBesideLoad:
		op, moved, err = g.loadOp(s, probeLoadFlash, count, block, basePool*mib)
	case probeBesideFlash:
		op, moved, err = g.saveOp(s, probeSaveFlash, count, block, basePool*mib, g.spareThreads)
	}
	t.beside = []cuda.Operation{op}
	t.verify = both(t.verify, moved)
	return t, err
}

// layersOp readies a chunk in some layers, one after another without pause.
func (g *rig) layersOp(s *cuda.Session, m *hw.Model, tokens, prefix int64) (*setup, error) {
	layer, verify, err := g.layerOp(s, m, tokens, prefix)
	if err != nil {
		return nil, err
	}
	return &setup{
		bench: cuda.Bench{Calls: slices.Repeat(layer, besideRepeats)}, verify: verify, settle: 2 * settled,
		each: func(sample, _ float64) float64 { return sample / besideRepeats },
	}, nil
}

// setupCalls readies launches and small copies, in turn, while a second thread
// copies 16 KiB blocks one by one: both wait for the driver.
func (g *rig) setupCalls(s *cuda.Session, p Point) (*setup, error) {
	const count, block = 4096, 16 * kib
	t := &setup{bench: cuda.Bench{Clock: cuda.SubmitClock}, settle: settled}
	near, err := g.poisoned(s, block)
	if err != nil {
		return nil, err
	}
	if err := g.pool.grow(s, gib); err != nil {
		return nil, err
	}
	host, hostBytes := g.pool.at(0)
	up := &cuda.MemcpyArgs{Dst: near, Src: host, Bytes: block}
	t.verify = func(s *cuda.Session) error { return g.sameBytes(s, near, hostBytes[:block], up) }
	launches, copies := p.At("launches"), p.At("copies")
	for i := range max(launches, copies) {
		if i < launches {
			t.bench.Calls = append(t.bench.Calls, &cuda.EmptyArgs{})
		}
		if i < copies {
			t.bench.Calls = append(t.bench.Calls, up)
		}
	}
	var op cuda.Operation
	var moved func(*cuda.Session) error
	switch p.Probe {
	case probeCallsNone:
		return t, nil
	case probeCallsSave:
		op, moved, err = g.saveOp(s, probeSaveMemcpy, count, block, basePool*mib, 0)
	case probeCallsLoad:
		op, moved, err = g.loadOp(s, probeLoadMemcpy, count, block, basePool*mib)
	}
	t.beside = []cuda.Operation{op}
	t.verify = both(t.verify, moved)
	return t, err
}

// setupBoth readies copies of blocks one by one the one way, or a layer's lists on
// their way down, and where the point says so a second thread's copies of blocks the
// other way, or saves, beside them: both wait for the driver.
func (g *rig) setupBoth(s *cuda.Session, p Point) (*setup, error) {
	const count = 4096 // of the second thread
	t := &setup{bench: cuda.Bench{Clock: cuda.WallClock}, settle: following}
	load := func(n int64) (cuda.Operation, func(*cuda.Session) error, error) {
		return g.loadOp(s, probeLoadMemcpy, n, bothBlock, basePool*mib)
	}
	save := func(n int64) (cuda.Operation, func(*cuda.Session) error, error) {
		return g.saveOp(s, probeSaveMemcpy, n, bothBlock, basePool*mib, 0)
	}
	other := save
	var op cuda.Operation
	var verify func(*cuda.Session) error
	var err error
	switch p.Probe {
	case probeBothLoad:
		op, verify, err = load(p.At("blocks"))
	case probeBothSave:
		other = load
		op, verify, err = save(p.At("blocks"))
	case probeBothTurn:
		op, verify, err = g.listsDown(s, p.At("bytes"))
	}
	if err != nil {
		return nil, err
	}
	t.bench.Calls, t.verify = []cuda.Operation{op}, verify
	if p.At("beside") == 0 {
		return t, nil
	}
	op, verify, err = other(count)
	t.beside, t.verify = []cuda.Operation{op}, both(t.verify, verify)
	return t, err
}

// listsDown readies the kernel that brings lists down, as the live loop's does a layer's.
func (g *rig) listsDown(s *cuda.Session, bytes int64) (cuda.Operation, func(*cuda.Session) error, error) {
	near, err := g.random(s, bytes/2)
	if err != nil {
		return nil, nil, err
	}
	if err := g.pool.grow(s, gib); err != nil {
		return nil, nil, err
	}
	host, hostBytes := g.pool.at(0)
	down := &cuda.CarryArgs{Dst: host, Src: near, Bytes: bytes}
	return down, func(s *cuda.Session) error {
		if err := s.Carry((*cuda.MemcpyArgs)(down), 0); err != nil {
			return err
		}
		want := make([]byte, bytes)
		return compareAfter(errors.Join(s.DeviceSync(), cuda.Download(s, want, near)), hostBytes[:bytes], want, "lists")
	}, nil
}

// bothBlock is the block of probeBothLoad and probeBothSave, bytes.
const bothBlock = 16 * kib

// What the serving loop does beside saving prefill's KV.
const (
	saveBuffer    = 256 * mib
	layerLaunches = 9 // calls beside linears, attention and the kernel that carries lists: 15 in all
	layerLists    = 16 * kib
)

// setupLayers readies the prefill of a chunk in some layers, the KV of each
// saved in blocks when it is computed. probePrefillMemcpy saves from and to where
// the serving loop does, each layer from the next part of the save buffer to blocks
// of its own, since the same ones again stay in the caches on their way. It makes
// the loop's calls: those that are not here otherwise are empty kernels, as their
// computation is a small part.
func (g *rig) setupLayers(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	chunk := p.At("chunk_tokens")
	layer, verify, err := g.layerOp(s, m, chunk, p.At("prefix_tokens"))
	if err != nil {
		return nil, err
	}
	t := &setup{verify: verify, settle: settled, layers: &cuda.Layers{Compute: layer, Layers: int(p.At("layers"))}}
	engine := map[string]string{
		probeLayersMemcpy: probeSaveMemcpy, probeLayersGPU: probeSaveGPU, probeLayersFlash: probeSaveFlash, probePrefillMemcpy: probeSaveMemcpy,
	}[p.Probe]
	if engine == "" {
		return t, nil
	}
	count, block := chunk/blockTokens, m.Geometry(blockTokens).BlockBytes
	if p.Probe != probePrefillMemcpy {
		op, moved, err := g.saveOp(s, engine, count*int64(m.KVHeads), block, basePool*mib, g.spareThreads)
		if err != nil {
			return nil, err
		}
		t.layers.Save, t.verify = []cuda.Operation{op}, both(verify, moved)
		return t, nil
	}
	to, err := g.pagePlaces(s, int64(m.Layers), p.At("layers"), int64(m.KVHeads), count, block, p.At("pool_mib")*mib)
	if err != nil {
		return nil, err
	}
	layerBytes := count * int64(m.KVHeads) * block
	buffer, err := g.random(s, saveBuffer/2)
	if err != nil {
		return nil, err
	}
	if layerBytes > saveBuffer {
		return nil, fmt.Errorf("a layer's saves of %d bytes do not fit the save buffer of %d", layerBytes, int64(saveBuffer))
	}
	t.layers.Each, t.layers.Buffered = 1, int(saveBuffer/layerBytes)
	for i := range to {
		op, moved, err := g.saveFrom(s, engine, buffer+cuda.Ptr(int64(i%t.layers.Buffered)*layerBytes), to[i], block, 0)
		if err != nil {
			return nil, err
		}
		t.layers.Save = append(t.layers.Save, op)
		if i == 0 || i == len(to)-1 {
			t.verify = both(t.verify, moved)
		}
	}
	lists, err := g.poisoned(s, layerLists)
	if err != nil {
		return nil, err
	}
	host, _ := g.pool.at(0)
	t.layers.Compute = append(t.layers.Compute, &cuda.CarryArgs{Dst: lists, Src: host, Bytes: layerLists})
	for range layerLaunches {
		t.layers.Compute = append(t.layers.Compute, &cuda.EmptyArgs{})
	}
	t.settle = 0 // warm-up runs last as long as a card needs to settle
	return t, nil
}
