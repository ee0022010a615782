package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// A step in which the CPU takes longer for a layer than the GPU takes as long as the
// CPU, but for the GPU's part of the last layer; one in which it takes less is no
// longer for it.
func TestStepWaitsForTheCPU(t *testing.T) {
	const layers, tokens, loads = 8, 4 * 2048, 10
	step := func(layer, each float64) (elapsed, gpu des.Time, p *Profile, m *Model) {
		p, m = mustProfile(t, "h200"), mustModel(t, "lwm-7b")
		us := func(v float64) Figure { return Figure{Value: v, Unit: "us", From: Measured, Source: "a test"} }
		p.Host.CPULayer, p.Host.CPURequest, p.Host.CPULoad = us(layer), Figure{}, us(each)
		p.Host.CPURate = Figure{Value: 1, Unit: "GB/s", From: Measured, Source: "a test"}
		d, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true, GPULookup: true})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: tokens, ScoredBlocks: 1000, Sparse: true}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(d.Begin(&sim.Step{Requests: 4, Sampled: 4}))
		began := d.now
		for l := range layers {
			must(d.Score(l, &w))
			must(d.Move(&kv.Moves{Layer: l, Loads: loads, BlockBytes: m.Geometry(32).BlockBytes}))
			must(d.Compute(l, &w))
		}
		return d.now - began, d.busy + d.phases.LoadStall, p, m
	}
	quick, gpu, _, _ := step(1e-3, 1e-6)
	if quick != gpu {
		t.Errorf("with a quick CPU %v, the GPU's work and loads %v", quick, gpu)
	}
	slow, gpu, p, m := step(1000, 20)
	cpu := layers * p.CPUSeconds(4, 4*64*int64(m.KVHeads), loads)
	if want := layers * (1000e-6 + ListBytes(m, tokens)/1e9 + loads*20e-6); math.Abs(cpu-want) > 1e-9 {
		t.Errorf("the profile says %g s, want %g", cpu, want)
	}
	if got := slow.Seconds(); got < cpu || got > cpu+gpu.Seconds()/layers {
		t.Errorf("%g s with a CPU that takes %g and a GPU that takes %v", got, cpu, gpu)
	}
}
