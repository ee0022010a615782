package hw

import (
	"fmt"
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// By hand: with compute of 100 us, which takes 25 us more if a load overlaps throughout, a load
// loses a fifth of its speed.
func TestLoadOverlapByHand(t *testing.T) {
	const us = des.Time(1000)
	var delay curve
	for _, at := range [][2]float64{{64, 50e-6}, {128, 25e-6}, {256, 75e-6}} {
		delay.add(at[0], at[1])
	}
	for _, c := range []struct {
		load, trip     des.Time
		tokens         int
		longer, layers des.Time
	}{
		{40 * us, 0, 128, 10 * us, 10 * us}, // 50 us of load, in which 40 of the layer's are done
		{100 * us, 0, 128, 25 * us, 25 * us},
		{200 * us, 0, 128, 25 * us, 25 * us}, // the rest of it as fast as alone
		{200 * us, 0, 192, 25 * us, 50 * us}, // between points
		{200 * us, 0, 8, 25 * us, 50 * us},
		{300 * us, 0, 512, 25 * us, 150 * us}, // beyond them
		{0, 0, 128, 0, 0},
		{40 * us, 20 * us, 128, 10 * us, 10 * us},  // it ends before the round trip
		{120 * us, 20 * us, 128, 30 * us, 40 * us}, // 150 us, 25 of them the round trip's: half of it
		{400 * us, 20 * us, 128, 30 * us, 55 * us},
	} {
		o := loadOverlap{share: 0.2, delay: delay, trip: float64(30 * us)}
		longer, layer := o.of(c.load, 100*us, c.trip, c.tokens)
		if off := layer - c.layers; longer != c.longer || max(off, -off) > 1 {
			t.Errorf("a load of %v is %v longer, and the layer of %d tokens %v; want %v and %v", c.load,
				longer, c.tokens, layer, c.longer, c.layers)
		}
		if longer, _ := o.of(c.load, 0, c.trip, c.tokens); longer != 0 {
			t.Errorf("a load that nothing overlaps is %v longer", longer)
		}
	}
}

// A model whose shape was not measured has the median of all delays, at any number of tokens.
func TestLoadDelaysOfOtherShapes(t *testing.T) {
	p := mustProfile(t, "h200")
	own := newLoadOverlap(p, mustModel(t, "llama3-8b"))
	other := newLoadOverlap(p, mustModel(t, "qwen2-7b"))
	const second = des.Time(des.Second)
	var layers, medians []des.Time
	for _, n := range []int{64, 384, 1024} {
		_, a := own.of(second, second, 0, n)
		_, b := other.of(second, second, 0, n)
		layers, medians = append(layers, a), append(medians, b)
	}
	if layers[0] == layers[1] || layers[1] == layers[2] {
		t.Errorf("delays of the measured shape are alike: %v", layers)
	}
	if medians[0] != medians[1] || medians[1] != medians[2] || medians[0] == 0 {
		t.Errorf("delays of another shape are %v", medians)
	}
}

// A step's first layer has its part of a prefix loaded where nothing computes: that takes what it
// takes alone.
func TestFirstLayersOverlapNothing(t *testing.T) {
	for _, engine := range []string{LoadFlash, LoadMemcpy} {
		for _, decodes := range []int{0, 4} { // whose scores and round trip come before the load
			t.Run(fmt.Sprintf("%s, %d decodes", engine, decodes), func(t *testing.T) {
				testFirstLayer(t, engine, decodes)
			})
		}
	}
}

func testFirstLayer(t *testing.T, engine string, decodes int) {
	run := func(layers int) (alone, stall, delay des.Time) {
		d, err := NewDevice(mustProfile(t, "h200"), mustModel(t, "llama3-8b"),
			DeviceOptions{LoadEngine: engine, Offload: true})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 300 + decodes, Prefill: []sim.Span{{Query: 300, Prefix: 6000}},
			Decodes: decodes, DecodeTokens: int64(decodes) * 2048, ScoredBlocks: int64(decodes) * 400,
			Sparse: decodes > 0}
		moves := kv.Moves{Prefix: 80, BlockBytes: 8 << 10} // shorter than a layer, by any engine
		stall = runMoves(t, d, &sim.Step{}, layers, &w, moves).Phases.LoadStall
		_, delay = d.loadOverlap.of(des.Second, des.Second, des.Second, w.Tokens)
		return nanoseconds(d.loader.seconds(moves.Prefix, moves.BlockBytes)), stall, delay
	}
	alone, first, delay := run(1)
	if first != alone {
		t.Errorf("a step of one layer waits %v for %v of loads", first, alone)
	}
	if engine == LoadMemcpy {
		delay = 0 // copy engines take no SMs
	}
	if _, both, _ := run(2); both-alone > min(alone, delay) || both > alone != (delay > 0) {
		t.Errorf("a second layer waits %v; its load of %v overlaps, and delays by %v at most", both-alone,
			alone, delay)
	}
}

// Loads of prefixes never end sooner for contention, and a step without them is as it was.
func TestLoadOverlapSlowsPrefixesOnly(t *testing.T) {
	m := mustModel(t, "llama3-8b")
	slow, free := mustProfile(t, "h200"), mustProfile(t, "h200")
	if !slow.Load.Contention.Set() || len(slow.Load.LayerDelay) == 0 {
		t.Fatal("h200 has no contention of loads")
	}
	free.Load.Contention, free.Load.LayerDelay, free.Load.TripDelay = Figure{}, nil, Figure{}
	for _, prefix := range []int64{0, 1, 100, 3000, 50000} {
		var times []des.Time
		for _, p := range []*Profile{free, slow} {
			d, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadFlash})
			if err != nil {
				t.Fatal(err)
			}
			w := sim.Work{Tokens: 300, Prefill: []sim.Span{{Query: 300, Prefix: 6000}}}
			timing := runMoves(t, d, &sim.Step{}, 4, &w, kv.Moves{Prefix: prefix, BlockBytes: 8 << 10})
			times = append(times, timing.Elapsed)
		}
		if times[1] < times[0] || prefix == 0 != (times[1] == times[0]) {
			t.Errorf("%d blocks of a prefix: %v with contention, %v without", prefix, times[1], times[0])
		}
	}
}

// By hand: over blocks of 16 tokens a chunk whose CTAs have SMs to themselves takes what each CTA's
// copies do, however many there are, and one with two CTAs an SM takes more.
func TestCopiesOfOneCTAAreAFloor(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama3-8b")
	price := func(query, block int) float64 {
		s, _ := p.PrefillSeconds(m, nil, sim.Span{Query: query, Prefix: 8192}, block)
		return s
	}
	for _, query := range []int{128, 512} { // 32 and 128 CTAs on 132 SMs
		want := 2 * 2 * (8192 + float64(query)/2) / 16 * p.Paged.Copy.SI()
		if got := price(query, 16); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%d tokens take %g s, want the copies of a CTA, %g", query, got, want)
		}
		if got := price(query, 64); got >= want {
			t.Errorf("%d tokens over blocks of 64 take %g s, over blocks of 16 %g", query, got, want)
		}
	}
	if few, many := price(512, 16), price(1152, 16); many < 2*few {
		t.Errorf("1152 tokens take %g s, 512 take %g", many, few)
	}
}

// A round trip that overlaps with the next layer's load takes longer, one of a layer that has none
// or whose load has ended does not.
func TestRoundTripsWaitForLoads(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama3-8b")
	stall := func(trip Figure, decodes int, blocks int64) des.Time {
		p.Load.TripDelay = trip
		d, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadFlash, Offload: true})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 300 + decodes, Prefill: []sim.Span{{Query: 300, Prefix: 6000}},
			Decodes: decodes, DecodeTokens: int64(decodes) * 2048, ScoredBlocks: int64(decodes) * 400,
			Sparse: decodes > 0}
		return runMoves(t, d, &sim.Step{}, 3, &w, kv.Moves{Prefix: blocks, BlockBytes: 8 << 10}).Phases.
			LoadStall
	}
	own := p.Load.TripDelay
	if own.SI() <= 0 {
		t.Fatal("h200 has no delay of round trips")
	}
	for _, decodes := range []int{4, 0} {
		var longest des.Time
		for blocks := int64(80); blocks < 6000; blocks += 80 { // that end in a layer, in its trip, later
			with, without := stall(own, decodes, blocks), stall(Figure{}, decodes, blocks)
			longest = max(longest, with-without)
			if with < without || blocks < 1000 && with > without {
				t.Errorf("%d decodes and %d blocks wait %v for %v without round trips", decodes, blocks, with,
					without)
			}
		}
		most := 2 * nanoseconds(own.SI()) // the first layer's load overlaps with nothing
		if longest > most || decodes > 0 != (longest > most/4) {
			t.Errorf("%d decodes wait up to %v longer for round trips, of at most %v", decodes, longest,
				most)
		}
	}
}

// Where decodes wait for the host, each block that the layer's tokens fill takes its time; in a
// layer without a round trip none does.
func TestFilledBlocksTakeTheHostsTime(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama3-8b")
	host := func(sparse bool, saves int64) des.Time {
		d, err := NewDevice(p, m, DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash,
			Offload: true, SaveBufferBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 8192, Sparse: sparse}
		if sparse {
			w.ScoredBlocks = 1600
		}
		moves := kv.Moves{Saves: saves, BlockBytes: 8 << 10}
		return runMoves(t, d, &sim.Step{}, 1, &w, moves).Phases.Host
	}
	want := nanoseconds(100 * p.Host.LoadBlock.SI())
	if got := host(true, 100) - host(true, 0); got != want {
		t.Errorf("100 full blocks take the host %v, want %v", got, want)
	}
	if got := host(false, 100) - host(false, 0); got != 0 {
		t.Errorf("100 full blocks take the host %v though no decode waits for it", got)
	}
}
