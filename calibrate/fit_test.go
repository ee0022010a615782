package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sparseserve/hw"
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

// Where few lists have a form of their own, the fit finds it, and none where they
// have not (TestFitsRecoverKnownFigures).
func TestFewListsOfPSA(t *testing.T) {
	want := truth("a100-40gb")
	figure := func(v float64, unit string) hw.Figure {
		return hw.Figure{Value: v, Unit: unit, From: hw.Measured, Source: "x"}
	}
	want.PSADecode.Few = hw.PSAFew{Room: figure(108, "lists"), Wave: figure(psaWave, "blocks"), Launch: figure(10, "us"),
		Query: figure(1.2, "us"), NextWave: figure(2, "us"), WaveQuery: figure(700, "ns"), Rate: want.DenseDecode.Rate}
	got := fitted(t, measured(t, Full, newFake(want, 0.01, 7))).Profile.PSADecode.Few
	for _, p := range []struct {
		name      string
		got, want hw.Figure
	}{
		{"launch", got.Launch, want.PSADecode.Few.Launch}, {"query", got.Query, want.PSADecode.Few.Query}, {"next_wave", got.NextWave, want.PSADecode.Few.NextWave},
		{"wave_query", got.WaveQuery, want.PSADecode.Few.WaveQuery}, {"rate", got.Rate, want.PSADecode.Few.Rate},
	} {
		if e := p.got.SI()/p.want.SI() - 1; !(math.Abs(e) <= 0.1) {
			t.Errorf("%s: %.4g %s, want %.4g %s", p.name, p.got.Value, p.got.Unit, p.want.Value, p.want.Unit)
		}
	}
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
		{"host.call_wait", got.Host.CallWait, want.Host.CallWait, 0.05},
		{"host.load_wait", got.Host.LoadWait, want.Host.LoadWait, 0.05},
		{"host.copy_wait", got.Host.CopyWait, want.Host.CopyWait, 0.05},
		{"host.turn_wait", got.Host.TurnWait, want.Host.TurnWait, 0.05},
		{"host.layer_rate", got.Host.LayerRate, want.Host.LayerRate, 0.1},
		{"host.layer_request", got.Host.LayerRequest, want.Host.LayerRequest, 0.1},
		{"host.psa_layer", got.Host.PSALayer, want.Host.PSALayer, 0.1},
		{"host.psa_request", got.Host.PSARequest, want.Host.PSARequest, 0.25}, // of requests and the bytes of their lists
		{"host.psa_rate", got.Host.PSARate, want.Host.PSARate, 0.1},
		{"host.whole_list", got.Host.WholeList, want.Host.WholeList, 0.03},
		{"host.freed_block", got.Host.FreedBlock, want.Host.FreedBlock, 0.03},
		{"host.load", got.Host.Load, want.Host.Load, 0.15},
		{"host.loads", got.Host.Loads, want.Host.Loads, 0.25}, // a few points of 1 %
		{"host.loads_half", got.Host.LoadsHalf, want.Host.LoadsHalf, 0.6},
		{"host.list_copy", got.Host.ListCopy, want.Host.ListCopy, 0.05},
		{"host.kv_write", got.Host.KVWrite, want.Host.KVWrite, 0.1},
		{"host.lookup", got.Host.Lookup, want.Host.Lookup, 0.1},
		{"host.lookup_rate", got.Host.LookupRate, want.Host.LookupRate, 0.2},
		{"host.cpu_layer", got.Host.CPULayer, want.Host.CPULayer, 0.1},
		{"host.cpu_rate", got.Host.CPURate, want.Host.CPURate, 0.2},
		{"host.cpu_load", got.Host.CPULoad, want.Host.CPULoad, 0.2},
		{"host.lookup_miss", got.Host.LookupMiss, want.Host.LookupMiss, 0.3},
		{"host.list_rate", got.Host.ListRate, want.Host.ListRate, 0.1},
		{"load.memcpy_call", got.Load.MemcpyCall, want.Load.MemcpyCall, 0.03},
		{"load.memcpy_base", got.Load.MemcpyBase, want.Load.MemcpyBase, 0.1},
		{"load.batched_call", got.Load.BatchedCall, want.Load.BatchedCall, 0.1},
		{"load.flash_launch", got.Load.FlashLaunch, want.Load.FlashLaunch, 0.1},
		{"load.flash_floor", got.Load.FlashFloor, want.Load.FlashFloor, 0.03},
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
		{"scoring.per_query", got.Scoring.PerQuery, want.Scoring.PerQuery, 0.1},
		{"clock.alone", got.Clock.Alone, want.Clock.Alone, 0.03},
		{"clock.meter", got.Clock.Meter, want.Clock.Meter, 0.2},
		{"clock.pace", got.Clock.Pace, want.Clock.Pace, 0.2},
		{"clock.attention", got.Clock.Attention, want.Clock.Attention, 0.1},
		{"clock.copies", below(got.Clock.Copies), below(want.Clock.Copies), 0.15},
		{"clock.idle", below(got.Clock.Idle), below(want.Clock.Idle), 0.15},
		{"clock.dense", below(got.Clock.Dense), below(want.Clock.Dense), 0.15},
		{"clock.linears", below(got.Clock.Linears), below(want.Clock.Linears), 0.15},
		{"clock.decode", got.Clock.Decode, want.Clock.Decode, 0.2},
		{"link.duplex_gather", got.Link.DuplexGather, want.Link.DuplexGather, 0.01},
		{"load.flash_queued", got.Load.FlashQueued, want.Load.FlashQueued, 0.1},
		{"load.flash_idle", got.Load.FlashIdle, want.Load.FlashIdle, 0.1},
		{"save.ring_launch", got.Save.RingLaunch, want.Save.RingLaunch, 0.1},
		{"save.ring_rate", got.Save.RingRate, want.Save.RingRate, 0.05},
		{"digest.launch", got.Digest.Launch, want.Digest.Launch, 0.1},
		{"digest.rate", got.Digest.Rate, want.Digest.Rate, 0.05},
		{"psa_decode.launch", got.PSADecode.Launch, want.PSADecode.Launch, 0.1},
		{"psa_decode.round", got.PSADecode.Round, want.PSADecode.Round, 0.05},
		{"psa_decode.relaunch", got.PSADecode.Relaunch, want.PSADecode.Relaunch, 0.05},
		{"psa_decode.per_block", got.PSADecode.PerBlock, want.PSADecode.PerBlock, 0.1},
		{"embedding.launch", got.Embedding.Launch, want.Embedding.Launch, 0.05},
		{"embedding.rate", got.Embedding.Rate, want.Embedding.Rate, 0.05},
		{"load.batched_early", got.Load.BatchedEarly, want.Load.BatchedEarly, 0.01},
		{"load.batched_first", got.Load.BatchedFirst, want.Load.BatchedFirst, 0.01},
		{"load.memcpy_early", got.Load.MemcpyEarly, want.Load.MemcpyEarly, 0.15},
		{"load.memcpy_first", got.Load.MemcpyFirst, want.Load.MemcpyFirst, 0.3},
		{"load.memcpy_start", got.Load.MemcpyStart, want.Load.MemcpyStart, 0.15},
		{"save.flash_join", got.Save.FlashJoin, want.Save.FlashJoin, 0.15},
		{"save.scatter[0].long", got.Save.Scatter[0].Long, want.Save.Scatter[0].Long, 0.05},
	}
	for i, row := range want.Clock.Gain {
		pairs = append(pairs, pair{fmt.Sprintf("clock.gain[%d]", i), got.Clock.Gain[i].Figure, row.Figure, 0.15})
	}
	for i, row := range want.Load.Flash {
		pairs = append(pairs, pair{fmt.Sprintf("load.flash[%d]", i), got.Load.Flash[i].Figure, row.Figure, 0.04})
	}
	for i, row := range want.Load.MemcpyPools {
		pairs = append(pairs, pair{fmt.Sprintf("load.memcpy_pools[%d]", i), got.Load.MemcpyPools[i].Figure, row.Figure, 0.03},
			pair{fmt.Sprintf("save.memcpy_pools[%d]", i), got.Save.MemcpyPools[i].Figure, want.Save.MemcpyPools[i].Figure, 0.04})
	}
	for i, row := range want.Save.MemcpyBesidePools {
		pairs = append(pairs, pair{fmt.Sprintf("save.memcpy_beside_pools[%d]", i), got.Save.MemcpyBesidePools[i].Figure, row.Figure, 0.03})
	}
	for i, row := range want.Save.Scatter {
		pairs = append(pairs, pair{fmt.Sprintf("save.scatter[%d]", i), got.Save.Scatter[i].Figure, row.Figure, 0.04})
	}
	for i, row := range want.Load.BatchedSizes {
		pairs = append(pairs, pair{fmt.Sprintf("load.batched_sizes[%d]", i), got.Load.BatchedSizes[i].Figure, row.Figure, 0.06})
	}
	for _, p := range pairs {
		if e := p.got.SI()/p.want.SI() - 1; !(math.Abs(e) <= p.tolerance) {
			t.Errorf("%s: %.4g %s, want %.4g %s (%+.1f %%)", p.name, p.got.Value, p.got.Unit, p.want.Value, p.want.Unit, 100*e)
		}
		if p.got.From != hw.Measured || !strings.Contains(p.got.Source, "driver 580.1") {
			t.Errorf("%s: provenance %s, %q", p.name, p.got.From, p.got.Source)
		}
	}
	if got.PSADecode.Few.Room.Set() {
		t.Error("few lists of PSA have a form of their own, and had none in the samples")
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
	for round := range 3 {
		want := truth([]string{"a100-40gb", "a100-80gb", "h100-80gb"}[round%3])
		scale := func(f *hw.Figure, low, high float64) {
			f.Value *= low * math.Pow(high/low, r.Float64())
		}
		scale(&want.Load.MemcpyCall, 0.3, 3)
		scale(&want.Load.BatchedBlock, 0.3, 3)
		scale(&want.Load.FlashBlock, 0.1, 2)
		scale(&want.Load.FlashLaunch, 0.7, 1.3)
		scale(&want.Save.MemcpyCall, 0.3, 3)
		scale(&want.Save.FlashCall, 0.5, 10)
		scale(&want.DenseDecode.Rate, 0.3, 1)
		scale(&want.DenseDecode.Launch, 0.3, 1)
		scale(&want.Scoring.Rate, 0.2, 1)
		got := fitted(t, measured(t, Full, newFake(want, 0, 1))).Profile
		for _, f := range got.Fits {
			if strings.HasPrefix(f.Model, "live.unsplit_tight") && !got.Load.FlashQueued.Set() {
				continue // a launch as long as this machine's hides what it takes behind others
			}
			limit := 0.04
			if strings.HasPrefix(f.Model, "linears") || strings.HasPrefix(f.Model, "pointwise") || f.Model == "prefill_attention" {
				limit = 0.12 // straight lines between other points than the machine's
			}
			if f.MaxError > limit {
				t.Errorf("machine %d, %s: %+v", round, want.Name, f)
			}
		}
	}
}

// Lists that end in different rounds show how fast a CTA goes alone, in either
// form, and for how many lists clusters are whole; without such samples nothing
// is said of them, and nothing else of PSA depends on them.
func TestUnevenListsOfPSA(t *testing.T) {
	want := truth("a100-40gb")
	figure := func(v float64, unit string) hw.Figure {
		return hw.Figure{Value: v, Unit: unit, From: hw.Measured, Source: "x"}
	}
	for _, share := range fullShares {
		want.PSADecode.Alone = figure(900, "ns")
		want.PSADecode.Few = hw.PSAFew{Room: figure(108, "lists"), Wave: figure(psaWave, "blocks"), Launch: figure(10, "us"),
			Query: figure(1.2, "us"), NextWave: figure(2, "us"), WaveQuery: figure(700, "ns"), Rate: want.DenseDecode.Rate,
			Alone: figure(2.5, "us"), Full: figure(share*128, "lists")} // 64 lists are whole, or 60
		want.PSADecode.Few.Room.Value = 128
		samples := measured(t, Full, newFake(want, 0.01, 7))
		samples.Origin.SMs = "128"
		got := fitted(t, samples).Profile.PSADecode
		for _, p := range []struct {
			name      string
			got, want hw.Figure
		}{
			{"alone", got.Alone, want.PSADecode.Alone}, {"few.alone", got.Few.Alone, want.PSADecode.Few.Alone}, {"few.full", got.Few.Full, want.PSADecode.Few.Full},
		} {
			if e := p.got.SI()/p.want.SI() - 1; !(math.Abs(e) <= 0.1) {
				t.Errorf("full for %.0f lists: %s: %.4g %s, want %.4g %s", share*128, p.name, p.got.Value, p.got.Unit, p.want.Value, p.want.Unit)
			}
		}
		if share != fullShares[0] {
			continue
		}
		old := *samples
		old.Records = slices.DeleteFunc(slices.Clone(samples.Records), func(r Record) bool { return r.Point.Probe == probePSAUneven })
		without := fitted(t, &old).Profile.PSADecode
		if without.Alone.Set() || without.Few.Alone.Set() || without.Few.Full.Set() {
			t.Error("figures of uneven lists, and none was measured")
		}
		got.Alone, got.Few.Alone, got.Few.Full = hw.Figure{}, hw.Figure{}, hw.Figure{}
		if without != got {
			t.Errorf("uneven lists change the figures of equal ones: %+v, without %+v", got, without)
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

// Unequal contexts show what their pieces cost; without such samples nothing is
// said of them, and no figure of equal ones depends on them.
func TestUnevenContexts(t *testing.T) {
	want := truth("a100-40gb")
	samples := measured(t, Full, newFake(want, 0.005, 5))
	got := fitted(t, samples).Profile.DenseDecode
	for _, p := range []struct {
		name      string
		got, want hw.Figure
	}{{"tail", got.Tail, want.DenseDecode.Tail}, {"piece", got.Piece, want.DenseDecode.Piece}, {"pages", got.Pages, want.DenseDecode.Pages}} {
		if e := p.got.SI()/p.want.SI() - 1; !(math.Abs(e) <= 0.15) {
			t.Errorf("%s: %.4g %s, want %.4g %s", p.name, p.got.Value, p.got.Unit, p.want.Value, p.want.Unit)
		}
	}
	unknown := *samples
	unknown.Origin.SMs = ""
	if d := fitted(t, &unknown).Profile.DenseDecode; d.CTAs.Set() || d.Tail.Set() || d.Piece.Set() || d.Pages.Set() {
		t.Errorf("how contexts are cut is not known, and yet %+v", d)
	}
	samples.Records = slices.DeleteFunc(samples.Records, func(r Record) bool { return r.Point.Probe == probeDenseUneven })
	without := fitted(t, samples).Profile.DenseDecode
	got.Tail, got.Piece, got.Pages = hw.Figure{}, hw.Figure{}, hw.Figure{}
	if without != got {
		t.Errorf("unequal contexts change the figures of equal ones: %+v, without %+v", got, without)
	}
	if c := unevenContexts(4, 6016, 6); c[3] < 5*c[0] || c[3] > 7*c[0] || max(c[0]+c[1]+c[2]+c[3]-4*6016, 4*6016-c[0]-c[1]-c[2]-c[3]) > 64 {
		t.Errorf("contexts %v", c)
	}
}

// below is by how much of the limit a power is below it, which is what brings the clock
// back.
func below(power hw.Figure) hw.Figure {
	power.Value = 1 - power.Value
	return power
}
