package cost

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

const (
	mb     = 1_000_000
	milli  = des.Millisecond
	nearly = 5 // ns by which rounding may be off
)

// roundLink is a card whose link loads 10 MB a ms and saves 5, and both together 12.5.
func roundLink(t testing.TB) *hw.Profile {
	p := mustProfile(t, "a100-40gb")
	gbs := func(v float64) hw.Figure { return count(v, "GB/s") }
	p.Link = hw.Link{Nominal: gbs(20), H2D: gbs(10), D2H: gbs(5), DuplexCopy: gbs(12.5),
		DuplexKernel: gbs(11)}
	return p
}

// roundDrive reads 2 MB a ms, in at most 10 reads, and writes 1. The given number of GPUs share it,
// each with chunks of the given bytes.
func roundDrive(gpus float64, chunk int64) PrefixOptions {
	rate := func(v float64, unit string) hw.Figure { return count(v, unit) }
	return PrefixOptions{GPUs: gpus, Chunk: chunk, Drive: &hw.Drive{Name: "round",
		Size: rate(1000, "GB"), Read: rate(2, "GB/s"), Write: rate(1, "GB/s"), Reads: rate(1e4, "1/s")}}
}

// roundDevice has 32 layers, and a drive for two GPUs with chunks of 1 MB each.
func roundDevice(t testing.TB) *Device {
	d, err := NewDevice(roundLink(t), mustModel(t, "lwm-7b"),
		DeviceOptions{Prefix: roundDrive(2, mb)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// took compares a time with milliseconds.
func took(t *testing.T, what string, got des.Time, ms float64) {
	t.Helper()
	if off := float64(got) - ms*float64(milli); math.Abs(off) > nearly {
		t.Errorf("%s: %v, want %g ms", what, got, ms)
	}
}

// Loads use the link in sequence: 50 MB take 5 ms, 30 more wait for them.
func TestLoadsFromDRAMByHand(t *testing.T) {
	d := roundDevice(t)
	for _, l := range []struct {
		at     des.Time
		bytes  int64
		landed float64
	}{
		{7 * milli, 50 * mb, 12},
		{8 * milli, 30 * mb, 15},
		{20 * milli, 10 * mb, 21}, // the link is free
	} {
		took(t, "landed", d.FetchPrefix(l.at, sim.PrefixLoad{Bytes: l.bytes}), l.landed)
	}
}

// A load and saves that run at once have 12.5 MB a ms together, where alone they have 10 and 5:
// what takes both 5 ms is 50 + 25 MB, which take 6.
func TestLoadsShareTheLinkWithSavesByHand(t *testing.T) {
	for _, c := range []struct {
		name         string
		first        int64 // a load before
		saved        int64
		landed, done float64
	}{
		{"saves go on: 5 ms take 6, then 5 ms are left", 0, 50 * mb, 6, 11},
		{"saves end: 2 ms, 20 + 10 MB, take 2.4, then 3 ms are left", 0, 10 * mb, 5.4, 2.4},
		{"saves end before it begins", 50 * mb, 10 * mb, 10, 2},
	} {
		d := roundDevice(t)
		if c.first > 0 {
			d.FetchPrefix(0, sim.PrefixLoad{Bytes: c.first})
		}
		d.SavePrefix(0, c.saved, 0)
		took(t, c.name, d.FetchPrefix(0, sim.PrefixLoad{Bytes: 50 * mb}), c.landed)
		dram, _ := d.SavePrefix(0, 0, 0)
		took(t, c.name+", saves", dram, c.done)
	}
}

// Two GPUs load 10 MB each of one drive: 20 MB in 10 ms, and each its last chunk over the link in
// 0.1. In chunks of 0.1 MB these are 200 reads, which take 20 ms.
func TestLoadsFromSSDByHand(t *testing.T) {
	ssd := func(bytes int64) sim.PrefixLoad { return sim.PrefixLoad{Bytes: bytes, SSD: bytes} }
	for _, c := range []struct {
		name  string
		gpus  float64
		chunk int64
		load  sim.PrefixLoad
		ms    float64
	}{
		{"one GPU", 1, mb, ssd(10 * mb), 5.1},
		{"two GPUs", 2, mb, ssd(10 * mb), 10.1},
		{"small chunks", 2, mb / 10, ssd(10 * mb), 20.01},
		{"half a chunk", 2, mb, ssd(mb / 2), 0.55},
		{"mostly DRAM's", 2, mb, sim.PrefixLoad{Bytes: 50 * mb, SSD: 4 * mb}, 5},
		{"half DRAM's", 2, mb, sim.PrefixLoad{Bytes: 20 * mb, SSD: 10 * mb}, 10.1},
	} {
		opts := DeviceOptions{Prefix: roundDrive(c.gpus, c.chunk)}
		d, err := NewDevice(roundLink(t), mustModel(t, "lwm-7b"), opts)
		if err != nil {
			t.Fatal(err)
		}
		took(t, c.name, d.FetchPrefix(3*milli, c.load), 3+c.ms)
	}
	d := roundDevice(t)
	took(t, "first", d.FetchPrefix(0, ssd(10*mb)), 10.1)
	took(t, "second, whose reads wait for the first's", d.FetchPrefix(milli, ssd(10*mb)), 20.1)
	took(t, "of DRAM, behind it", d.FetchPrefix(2*milli, sim.PrefixLoad{Bytes: 10 * mb}), 21.1)
	took(t, "later", d.FetchPrefix(40*milli, ssd(10*mb)), 50.1)
}

// 50 MB are in DRAM after 10 ms, of which the drive then writes 10 MB for each of two GPUs in 20.
func TestSavesOfPrefixesByHand(t *testing.T) {
	d := roundDevice(t)
	for _, s := range []struct {
		at         des.Time
		bytes, ssd int64
		dram       float64
		onSSD      float64 // all until then
	}{
		{0, 50 * mb, 10 * mb, 10, 30},
		{5 * milli, 10 * mb, 5 * mb, 12, 40}, // both wait for those before
		{50 * milli, 10 * mb, 0, 52, 40},     // none
		{60 * milli, 0, 3 * mb, 60, 66},      // of DRAM
	} {
		dram, ssd := d.SavePrefix(s.at, s.bytes, s.ssd)
		took(t, "in DRAM", dram, s.dram)
		took(t, "on SSD", ssd, s.onSSD)
	}
}

// A step loads 320 MB, in 32 ms: its first layer waits for all of them, or layer i until i + 1 of
// 32 parts are there. Layers of 1,000 tokens take more than the ms of a part, layers of one token
// less.
func TestStepsWaitForPrefixesByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		tokens  int
		byLayer bool
	}{{"whole", 1, false}, {"by layer", 1, true}, {"by long layer", 1000, true}} {
		d := roundDevice(t)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(d.Begin(&sim.Step{Start: 3 * milli,
			Prefix: sim.PrefixLoad{Bytes: 320 * mb, ByLayer: c.byLayer}}))
		if c.byLayer {
			took(t, c.name+", before the first layer", d.phases.LoadStall, 0)
		} else {
			took(t, c.name+", before the first layer", d.phases.LoadStall, 32)
		}
		from := 3*milli + d.phases.Host
		w := sim.Work{Tokens: c.tokens, Prefill: []sim.Span{{Query: c.tokens, Prefix: 2000}}}
		for layer := range 32 {
			stalled, begun := d.phases.LoadStall, d.now
			must(d.Compute(layer, &w))
			want := 0 * milli
			if c.byLayer {
				want = max(0, from+des.Time(layer+1)*milli-begun)
			}
			took(t, c.name, d.phases.LoadStall-stalled, want.Seconds()*1e3)
		}
		timing, err := d.Finish()
		must(err)
		took(t, c.name+", the link", timing.Busy.H2D, 32)
		stall := timing.Phases.LoadStall
		switch {
		case c.tokens == 1000: // the first layer's part, then none
			took(t, c.name, stall, 1)
		case c.byLayer && (stall < 2*milli || stall > 31*milli):
			t.Errorf("%s: a stall of %v", c.name, stall)
		}
	}
}

// What was saved at 0 is in DRAM at 10 ms. A step of 4 ms begins when it is, or at once.
func TestStepsAwaitSavesByHand(t *testing.T) {
	for _, await := range []bool{true, false} {
		d := roundDevice(t)
		d.SavePrefix(0, 50*mb, 0)
		if err := d.Begin(&sim.Step{Start: 4 * milli, AwaitSaves: await}); err != nil {
			t.Fatal(err)
		}
		if host := d.phases.Host; host >= 6*milli {
			t.Fatalf("the host takes %v", host)
		}
		if await {
			took(t, "begun", d.now, 10)
			took(t, "stalled", d.phases.SaveStall, 6-d.phases.Host.Seconds()*1e3)
		} else {
			took(t, "not stalled", d.phases.SaveStall, 0)
		}
	}
}

// A load's price is its time with link and drive to itself.
func TestPricesOfLoadsByHand(t *testing.T) {
	p := NewPrefixPrices(roundLink(t), mustModel(t, "lwm-7b"), roundDrive(2, mb), 512)
	for l, ms := range map[sim.PrefixLoad]float64{
		{Bytes: 50 * mb}:               5,
		{Bytes: 10 * mb, SSD: 10 * mb}: 10.1,
		{Bytes: mb / 2, SSD: mb / 2}:   0.55,
		{Bytes: 50 * mb, SSD: 4 * mb}:  5,
	} {
		if got := 1e3 * p.Load(l); math.Abs(got-ms) > 1e-9 {
			t.Errorf("%+v: %g ms, want %g", l, got, ms)
		}
	}
}

// Tokens 100 to 1,300 are computed as chunks of 512, 512 and 176 in each of 32 layers.
func TestPricesOfComputationByHand(t *testing.T) {
	gpu, m := roundLink(t), mustModel(t, "lwm-7b")
	p := NewPrefixPrices(gpu, m, roundDrive(2, mb), 512)
	c, want := Of(gpu, m), 0.0
	for _, s := range []sim.Span{{Query: 512, Prefix: 100}, {Query: 512, Prefix: 612},
		{Query: 176, Prefix: 1124}} {
		w := sim.Work{Tokens: s.Query, Prefill: []sim.Span{s}}
		for _, part := range []Cost{c.GEMM, c.Elementwise, c.PrefillAttention} {
			want += 32 * Seconds(part, w)
		}
	}
	if got := p.Compute(100, 1300); math.Abs(got-want) > 1e-12 || got < 0.01 {
		t.Errorf("computed in %g s, want %g", got, want)
	}
	if got := p.Compute(70, 70); got != 0 {
		t.Errorf("nothing is computed in %g s", got)
	}
}

// From where on loads are cheaper is what a loop over all lengths finds, and farther from SSD, of
// which a load takes a chunk's time longer. A first chunk of 16 tokens costs the GPU as much as one
// of 100, so that it is cheaper to load where most are not.
func TestCrossoverIsWhatALoopFinds(t *testing.T) {
	for _, tokens := range []int{16, 256} {
		between := map[bool]int{}
		most, bytes := 16384/tokens, int64(tokens)<<19 // 512 KiB a token
		for _, gbs := range []float64{0.1, 5, 6, 7, 8, 12, 20} {
			gpu, opts := roundLink(t), roundDrive(2, bytes)
			gpu.Link.H2D.Value, opts.Drive.Read.Value, opts.Drive.Reads.Value = gbs, 40, 1e6
			p := NewPrefixPrices(gpu, mustModel(t, "lwm-7b"), opts, 2048)
			at := map[bool]int{}
			for _, ssd := range []bool{false, true} {
				want := 0
				for n := most; n > 0; n-- {
					l := sim.PrefixLoad{Bytes: int64(n) * bytes}
					if ssd {
						l.SSD = l.Bytes
					}
					if p.Load(l) >= p.Compute(0, n*tokens) {
						break
					}
					want = n
				}
				at[ssd] = p.Crossover(tokens, bytes, ssd, most)
				if at[ssd] != want {
					t.Errorf("%g GB/s, SSD %v: from %d chunks on, want %d", gbs, ssd, at[ssd], want)
				}
				if want > 1 {
					between[ssd]++
				}
			}
			if at[true] > 0 && (at[false] == 0 || at[true] < at[false]) {
				t.Errorf("%g GB/s: from SSD and DRAM %v chunks on", gbs, at)
			}
			switch {
			case gbs == 0.1 && at[false]+at[true] > 0:
				t.Errorf("%g GB/s: from %v chunks on, want none", gbs, at)
			case gbs == 8 && tokens == 256 && at[true] <= at[false]:
				t.Errorf("%g GB/s: no farther from SSD than from DRAM: %v chunks", gbs, at)
			}
		}
		if between[false] == 0 || between[true] == 0 {
			t.Errorf("lengths between the shortest and none: %v", between)
		}
	}
}
