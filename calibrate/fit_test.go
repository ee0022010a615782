package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// measured runs the plan against a fake machine, without files.
func measured(t testing.TB, plan Plan, b Bench) *Samples {
	t.Helper()
	o := fakeOrigin
	o.Plan, o.Date = string(plan), "2026-01-02"
	if f, ok := b.(*fakeBench); ok {
		o.Card = fakeCards[f.truth.Name]
	}
	s := &Samples{Origin: o}
	for _, p := range points(plan, fakeLimits) {
		timed, err := b.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		samples, err := FullRule.sample(context.Background(), timed)
		if err != nil {
			t.Fatal(err)
		}
		s.Records = append(s.Records, Record{p, samples})
	}
	return s
}

func fitted(t testing.TB, s *Samples) *Calibration {
	t.Helper()
	c, err := Fit(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The fits find the figures that the samples were made from.
func TestFitsRecoverKnownFigures(t *testing.T) {
	want := truth("a100-40gb")
	c := fitted(t, measured(t, Full, newFake(want, 0.01, 7)))
	got := c.Profile
	type pair struct {
		name      string
		got, want hw.Figure
		tolerance float64
	}
	pairs := []pair{
		{"link.h2d", got.Link.H2D, want.Link.H2D, 0.01},
		{"link.d2h", got.Link.D2H, want.Link.D2H, 0.01},
		{"link.duplex_copy", got.Link.DuplexCopy, want.Link.DuplexCopy, 0.01},
		{"link.duplex_kernel", got.Link.DuplexKernel, want.Link.DuplexKernel, 0.01},
		{"host.layer_sync", got.Host.LayerSync, want.Host.LayerSync, 0.02},
		{"host.driver_contention", got.Host.DriverContention, want.Host.DriverContention, 0.05},
		{"host.layer_rate", got.Host.LayerRate, want.Host.LayerRate, 0.1},
		{"host.layer_request", got.Host.LayerRequest, want.Host.LayerRequest, 0.1},
		{"host.free_block", got.Host.FreeBlock, want.Host.FreeBlock, 0.03},
		{"host.load_block", got.Host.LoadBlock, want.Host.LoadBlock, 0.15},
		{"load.memcpy_call", got.Load.MemcpyCall, want.Load.MemcpyCall, 0.03},
		{"load.memcpy_base", got.Load.MemcpyBase, want.Load.MemcpyBase, 0.1},
		{"load.flash_launch", got.Load.FlashLaunch, want.Load.FlashLaunch, 0.1},
		{"load.flash_floor", got.Load.FlashFloor, want.Load.FlashFloor, 0.1},
		{"load.flash_block", got.Load.FlashBlock, want.Load.FlashBlock, 0.1},
		{"save.memcpy_call", got.Save.MemcpyCall, want.Save.MemcpyCall, 0.03},
		{"save.gpu_rate", got.Save.GPURate, want.Save.GPURate, 0.03},
		{"save.gpu_block", got.Save.GPUBlock, want.Save.GPUBlock, 0.15},
		{"save.flash_call", got.Save.FlashCall, want.Save.FlashCall, 0.5}, // a tenth of the shortest save
		{"save.contention", got.Save.Contention, want.Save.Contention, 0.05},
		{"dense_decode.rate", got.DenseDecode.Rate, want.DenseDecode.Rate, 0.02},
		{"dense_decode.launch", got.DenseDecode.Launch, want.DenseDecode.Launch, 0.1},
		{"sparse_decode.rate", got.SparseDecode.Rate, want.SparseDecode.Rate, 0.02},
		{"dense_decode.merge", got.DenseDecode.Merge, want.DenseDecode.Merge, 0.1},
		{"sparse_decode.merge", got.SparseDecode.Merge, want.SparseDecode.Merge, 0.1},
		{"scoring.rate", got.Scoring.Rate, want.Scoring.Rate, 0.05},
		{"scoring.launch", got.Scoring.Launch, want.Scoring.Launch, 0.05},
		{"clock.gemm_steady_ratio", got.Clock.GEMMSteadyRatio, want.Clock.GEMMSteadyRatio, 0.03},
		{"clock.power_filter", got.Clock.PowerFilter, want.Clock.PowerFilter, 0.2},
		{"clock.frequency_slew", got.Clock.FrequencySlew, want.Clock.FrequencySlew, 0.2},
		{"clock.attention_power", got.Clock.AttentionPower, want.Clock.AttentionPower, 0.1},
		{"clock.copy_power", below(got.Clock.CopyPower), below(want.Clock.CopyPower), 0.15},
		{"clock.memory_bound_power", below(got.Clock.MemoryBoundPower), below(want.Clock.MemoryBoundPower), 0.15},
		{"block_close.launch", got.BlockClose.Launch, want.BlockClose.Launch, 0.1},
		{"block_close.rate", got.BlockClose.Rate, want.BlockClose.Rate, 0.05},
		{"psa_decode.launch", got.PSADecode.Launch, want.PSADecode.Launch, 0.1},
		{"psa_decode.round", got.PSADecode.Round, want.PSADecode.Round, 0.05},
		{"psa_decode.relaunch", got.PSADecode.Relaunch, want.PSADecode.Relaunch, 0.05},
		{"load.memcpy_warmup", got.Load.MemcpyWarmup, want.Load.MemcpyWarmup, 0.15},
		{"load.memcpy_warmup_blocks", got.Load.MemcpyWarmupBlocks, want.Load.MemcpyWarmupBlocks, 0.4},
	}
	for i, row := range want.Clock.Gain {
		pairs = append(pairs, pair{fmt.Sprintf("clock.gain[%d]", i), got.Clock.Gain[i].Figure, row.Figure, 0.15})
	}
	for i, row := range want.Load.Flash {
		pairs = append(pairs, pair{fmt.Sprintf("load.flash[%d]", i), got.Load.Flash[i].Figure, row.Figure, 0.04})
	}
	for i, row := range want.Load.MemcpyPools {
		pairs = append(pairs, pair{fmt.Sprintf("load.memcpy_pools[%d]", i), got.Load.MemcpyPools[i].Figure, row.Figure, 0.03})
	}
	for i, row := range want.Save.MemcpyOverlappedPools {
		pairs = append(pairs, pair{fmt.Sprintf("save.memcpy_overlapped_pools[%d]", i), got.Save.MemcpyOverlappedPools[i].Figure, row.Figure, 0.03})
	}
	for i, row := range want.Save.Scatter {
		pairs = append(pairs, pair{fmt.Sprintf("save.scatter[%d]", i), got.Save.Scatter[i].Figure, row.Figure, 0.04})
	}
	for _, p := range pairs {
		if e := p.got.SI()/p.want.SI() - 1; !(math.Abs(e) <= p.tolerance) {
			t.Errorf("%s: %.4g %s, want %.4g %s (%+.1f %%)", p.name, p.got.Value, p.got.Unit, p.want.Value, p.want.Unit, 100*e)
		}
		if p.got.From != hw.Measured || !strings.Contains(p.got.Source, "driver 580.1") {
			t.Errorf("%s: provenance %s, %q", p.name, p.got.From, p.got.Source)
		}
	}
	for _, f := range got.Fits {
		t.Logf("%+v", f)
		if len(f.Flags) > 0 && f.HeldOut > 0 {
			t.Errorf("%s is flagged: %v", f.Model, f.Flags)
		}
	}
	if got.Provenance.Device != fakeOrigin.Card || got.Provenance.Date != "2026-01-02" || got.GPU.HBMSize.SI() != 40<<30 {
		t.Errorf("provenance %+v, HBM %+v", got.Provenance, got.GPU.HBMSize)
	}
}

// Without noise the finished profile prices every point held out as the
// machine did, whatever the machine's figures.
func TestFitsAreExactOnExactSamples(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		want := truth([]string{"a100-40gb", "a100-80gb"}[round%2]) // rows of a Hopper are a staircase, which no held-out point meets exactly
		scale := func(f *hw.Figure, low, high float64) {
			f.Value *= low * math.Pow(high/low, r.Float64())
		}
		scale(&want.Load.MemcpyCall, 0.3, 3)
		scale(&want.Save.GPUBlock, 0.3, 3)
		scale(&want.Load.FlashBlock, 0.1, 2)
		scale(&want.Load.FlashLaunch, 0.7, 1.3)
		scale(&want.Save.MemcpyCall, 0.3, 3)
		scale(&want.Save.FlashCall, 0.5, 10)
		scale(&want.DenseDecode.Rate, 0.3, 1)
		scale(&want.DenseDecode.Launch, 0.3, 1)
		scale(&want.Scoring.Rate, 0.2, 1)
		got := fitted(t, measured(t, Full, newFake(want, 0, 1))).Profile
		for _, f := range got.Fits {
			limit := 0.04
			if strings.HasPrefix(f.Model, "linears") || strings.HasPrefix(f.Model, "pointwise") || f.Model == "prefill_attention" || f.Model == "load.flash" {
				limit = 0.12 // straight lines between other points than the machine's; a floor that few points see
			}
			if f.Model == "save.scatter" {
				limit = 0.06 // call, first chunk and rates of threads share few sizes that tell them apart
			}
			if f.MaxError > limit {
				t.Errorf("machine %d, %s: %+v", round, want.Name, f)
			}
		}
	}
}

// The rounds of lists as the rig makes them: about a quarter of the longest, none
// empty, each round no more lists than the one before.
func TestUnevenRounds(t *testing.T) {
	for _, lists := range []int64{4, 32, 512} {
		sum := int64(0)
		rounds := unevenRounds(lists, 12)
		for i, n := range rounds {
			if n < 1 || n > 12 || i > 0 && n < rounds[i-1] {
				t.Errorf("%d lists: %v", lists, rounds)
			}
			sum += n
		}
		if share := float64(sum) / float64(12*lists); rounds[lists-1] != 12 || share < 0.2 || share > 0.45 {
			t.Errorf("%d lists: the longest has %d rounds of 12, all %.2f of it", lists, rounds[lists-1], share)
		}
	}
	m, err := shapeModel("llama3-8b")
	must(err)
	if got := reach(point(probePSAUneven, "llama3-8b", 1, 2048, 16), m); !slices.Equal(got, []int{8, 3, 2, 1}) {
		t.Errorf("lists of each round: %v", got)
	}
}

// below is by how much of the limit a power is below it, which is what brings the clock
// back.
func below(power hw.Figure) hw.Figure {
	power.Value = 1 - power.Value
	return power
}
