package calibrate

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// wantedFigure is a fitted figure, the machine's value in SI, and the allowed error.
type wantedFigure struct {
	name      string
	got       hw.Figure
	want      float64
	tolerance float64
}

// wanted lists the figures that a profile has of a machine.
func wanted(m *machine, p *hw.Profile) []wantedFigure {
	all := []wantedFigure{
		{"link.h2d", p.Link.H2D, m.h2d, 0.01},
		{"link.d2h", p.Link.D2H, m.d2h, 0.01},
		{"link.duplex_copy", p.Link.DuplexCopy, m.duplexCopy, 0.01},
		{"link.duplex_kernel", p.Link.DuplexKernel, m.duplexK, 0.01},
		{"host.continue_latency", p.Host.ContinueLatency, m.sync, 0.01},
		{"load.memcpy_call", p.Load.MemcpyCall, m.load, 0.03},
		{"load.flash_floor", p.Load.FlashFloor, m.gather.floor, 0.1},
		{"load.flash_launch", p.Load.FlashLaunch, m.gather.launch, 0.1},
		{"load.layer_delay", p.Load.LayerDelay, m.loadDelay, 0.1},
		{"load.swap.launch", p.Load.Swap.Launch, m.swap.launch, 0.05},
		{"load.swap.scan", p.Load.Swap.Scan, m.swap.scan, 0.05},
		{"load.swap.rate", p.Load.Swap.Rate, m.swap.rate, 0.03},
		{"load.swap.request_rate", p.Load.Swap.RequestRate, m.swap.request, 0.03},
		{"save.memcpy_call", p.Save.MemcpyCall, m.save, 0.03},
		{"save.gpu_floor", p.Save.GPUFloor, m.scatter.floor, 0.1},
		{"save.gpu_launch", p.Save.GPULaunch, m.scatter.launch, 0.1},
		{"save.gpu_rate", p.Save.GPURate, m.scatter.rate, 0.03},
		{"save.contention", p.Save.Contention, m.contention, 0.05},
		{"save.flash_call", p.Save.FlashCall, m.flashCall, 0.15},
		{"linear_launch", p.LinearLaunch, m.gemmLaunch, 0.3},
		{"dense_decode.launch", p.DenseDecode.Launch, m.dense.launch, 0.1},
		{"dense_decode.rate", p.DenseDecode.Rate, m.dense.rate, 0.02},
		{"dense_decode.merge", p.DenseDecode.Merge, m.dense.merge, 0.1},
		{"dense_decode.l2_rate", p.DenseDecode.L2Rate, m.l2, 0.03},
		{"sparse_decode.launch", p.SparseDecode.Launch, m.sparse.launch, 0.1},
		{"sparse_decode.rate", p.SparseDecode.Rate, m.sparse.rate, 0.02},
		{"sparse_decode.merge", p.SparseDecode.Merge, m.sparse.merge, 0.4},
		{"scoring.launch", p.Scoring.Launch, m.scoreLaunch, 0.05},
		{"scoring.rate", p.Scoring.Rate, m.scoreRate, 0.05},
		{"clock.gemm_steady_ratio", p.Clock.GEMMSteadyRatio, m.clock.ratio, 0.03},
		{"clock.settling", p.Clock.Settling, m.clock.settling, 0.2},
	}
	return append(all, wantedRows(m, p)...)
}

// wantedRows are the figures of tables.
func wantedRows(m *machine, p *hw.Profile) (all []wantedFigure) {
	add := func(table string, row int, got hw.Figure, want, tolerance float64) {
		all = append(all, wantedFigure{fmt.Sprintf("%s[%d]", table, row), got, want, tolerance})
	}
	for i, r := range p.Linears {
		add("linears", i, r.Figure, m.linears(shapeOf(r.Shape), float64(r.Tokens)), 0.03)
	}
	for i, r := range p.Pointwise {
		add("pointwise", i, r.Figure, m.between(shapeOf(r.Shape), float64(r.Tokens)), 0.03)
	}
	for i, r := range p.Prefill {
		if r.Query >= 512 { // the rates of shorter chunks do not show
			add("prefill_attention.rate", i, r.Rate, m.rateOf(float64(r.Query)), 0.04)
		} else {
			add("prefill_attention.launch", i, r.Launch, m.launchOf(float64(r.Query)), 0.1)
		}
	}
	add("paged_prefill.copy", 0, p.Paged.Copy, m.prefillCopy, 0.05)
	l, launch := &m.sparsePrefill, m.sparsePrefill.launch
	for i, r := range p.SparsePrefill {
		add("sparse_prefill.efficiency", i, r.Efficiency, l.blocks, 0.05)
		switch pattern.Kind(r.Pattern) {
		case pattern.AShape:
			add("sparse_prefill.launch", i, r.Launch, launch, 0.3)
		case pattern.VerticalSlash:
			add("sparse_prefill.launch", i, r.Launch, launch+l.lineLaunch, 0.1)
			add("sparse_prefill.columns", i, r.Columns, l.columns, 0.05)
			add("sparse_prefill.index", i, r.Index, l.lineRate/m.hbm, 0.05)
		case pattern.BlockSparse:
			add("sparse_prefill.launch", i, r.Launch, launch+l.blockLaunch, 0.1)
			add("sparse_prefill.index", i, r.Index, l.blockRate/m.hbm, 0.1)
		}
	}
	for i, r := range p.Load.Flash {
		rate := m.gather.rate - m.gatherFalls*doublings(int64(r.PoolGiB*1024))
		add("load.flash", i, r.Figure, rate, 0.04)
	}
	for i, r := range p.Save.Scatter {
		add("save.scatter", i, r.Figure, m.scatterRate(float64(r.Threads)), 0.08)
	}
	for i, r := range p.Clock.Gain {
		add("clock.gain", i, r.Figure, m.gainAt(r.Shape, int64(r.Tokens)), 0.15)
	}
	return all
}

func shapeOf(name string) *llm.Model {
	m, err := shapeModel(name)
	must(err)
	return m
}
