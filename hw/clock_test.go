package hw

import (
	"math"
	"testing"

	"sparseserve/sim"
	"sparseserve/sim/des"
)

func withClock(p *Profile) {
	p.Clock = Clock{Alone: count(0.7, "share"), Burst: us(18000), Settle: us(12000), Rest: us(10000), Gain: []GainRow{{"llama2-7b", 2048, count(0.1, "share")}}}
}

// After a rest prefill is faster, until the clock's limit has fallen to what it may
// have; decodes and idle time let it rise; without figures nothing changes.
func TestClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	p.Clock = Clock{}
	chunk := sim.Work{Tokens: 2048, Prefill: []sim.Span{{Query: 2048}}}
	decode := sim.Work{Tokens: 1, Decodes: 1, DecodeTokens: 2048}
	const layers = 10
	device := func() func(w *sim.Work, idle des.Time) sim.Timing {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var at des.Time
		return func(w *sim.Work, idle des.Time) sim.Timing {
			at += idle
			got := runStep(t, d, &sim.Step{Start: at}, layers, w, 0, 0)
			at += got.Elapsed
			return got
		}
	}
	run := device()
	plain, plainDecode := run(&chunk, 0), run(&decode, 0)
	withClock(p)
	if path, err := p.validate(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	run = device()
	prefill := func(s sim.Timing) des.Time { return s.Phases.Linears + s.Phases.PrefillAttention }
	lin, attention := p.LinearsSeconds(m, 2048), p.PrefillSeconds(m, sim.Span{Query: 2048})
	c, l := newLowClock(p, m), newLinears(p, m)
	at := c.chunk(&l, lin, 2048, attention)
	full := prefill(plain) - nanoseconds(layers*0.1*lin)
	low := prefill(plain) + nanoseconds(layers*(at.low+at.attention-lin-attention))
	span := low - full
	if span <= 0 {
		t.Fatalf("%v at the low clock, %v at the full one", low, full)
	}
	within := func(what string, got des.Time, least, most float64) {
		t.Helper()
		if way := float64(got-full) / float64(span); way < least || way > most {
			t.Errorf("%s takes %v, %.3f of the way from %v to %v, want %g to %g", what, got, way, full, low, least, most)
		}
	}
	// Some 15 ms of prefill a step: the limit reaches the full clock within the second.
	first := run(&chunk, 0)
	within("the first chunk", prefill(first), -1e-4, 1e-4)
	if got, want := first.Phases.PrefillAttention, plain.Phases.PrefillAttention; got < want-layers || got > want+layers {
		t.Errorf("its attention takes %v, want %v", got, want)
	}
	within("the second chunk", prefill(run(&chunk, 0)), 0.1, 0.9)
	for range 4 {
		run(&chunk, 0)
	}
	within("the seventh chunk", prefill(run(&chunk, 0)), 0.97, 1.0001)
	for range 5 { // a moment without prefill lets it rise for a moment
		within("a chunk 30 us after another", prefill(run(&chunk, 30*des.Microsecond)), 0.95, 1.0001)
	}
	if got := run(&decode, 0); got.Phases.Linears != plainDecode.Phases.Linears {
		t.Errorf("a decode's linears take %v, want %v", got.Phases.Linears, plainDecode.Phases.Linears)
	}
	within("a chunk after a rest", prefill(run(&chunk, 400*des.Millisecond)), -1e-4, 1e-2)

	// Where waiting gives back more than other rests, idle time is waiting, and dense
	// decode is not.
	after := func(rest func()) des.Time {
		run = device()
		for range 6 {
			run(&chunk, 0)
		}
		rest()
		return prefill(run(&chunk, 0))
	}
	idle := func() { run(&decode, 10*des.Millisecond) }
	slow := after(idle)
	p.Clock.RestIdle = us(1000)
	if quick := after(idle); quick >= slow {
		t.Errorf("behind 10 ms of waiting a chunk takes %v where that gives much back, %v where it gives less", quick, slow)
	}
	p.Clock.RestDense = us(1e6)
	batch := sim.Work{Tokens: 64, Decodes: 64, DecodeTokens: 64 * 8192}
	decodes := func() { run(&batch, 0) }
	little := after(decodes)
	p.Clock.RestDense = us(1000)
	if much := after(decodes); much >= little || much < full-layers {
		t.Errorf("behind dense decode a chunk takes %v where that gives much back, %v where it gives nothing", much, little)
	}

	// And decodes' linears, of which sparse attention leaves more.
	sparse := func() {
		for range 3 {
			run(&sim.Work{Tokens: 4, Decodes: 4, DecodeTokens: 4 * 2048, Sparse: true}, 0)
		}
	}
	p.Clock.RestLinears = us(1e6)
	little = after(sparse)
	p.Clock.RestLinears = us(1000)
	if much := after(sparse); much >= little || much < full-layers {
		t.Errorf("behind decodes a chunk takes %v where their linears give much back, %v where these give nothing", much, little)
	}
}

// A prompt's first chunk behind another's last begins at the clock of that, which has
// more attention; one that comes from a lower clock takes longer at first.
func TestClockFollows(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	l, c := newLinears(p, m), newLowClock(p, m)
	alone, _ := l.seconds(2048)
	k := newClock(p)
	run := func(prefix int) (share float64) {
		at := c.chunk(&l, alone, 2048, p.PrefillSeconds(m, sim.Span{Query: 2048, Prefix: prefix}))
		return k.run(at.steady, nanoseconds(at.full+p.PrefillSeconds(m, sim.Span{Query: 2048, Prefix: prefix})), nanoseconds(at.low+at.attention))
	}
	settled := func(prefix int) {
		for range 100 {
			run(prefix)
		}
	}
	settled(8192)
	high := k.limit
	if got := run(8192); got != 0 {
		t.Errorf("settled, %g of the way to the full clock", got)
	}
	if got := run(0); got <= 0.05 || got >= 1 {
		t.Errorf("behind a longer prefix, %g of the way to the full clock", got)
	}
	settled(0)
	if k.limit >= high {
		t.Errorf("without a prefix the limit is %g, behind one %g", k.limit, high)
	}
	if got := run(8192); got >= -0.05 {
		t.Errorf("behind a shorter prefix, %g of the way to the full clock, want less than none", got)
	}
}

// However long a layer is, its time is that of many short ones of the same work.
func TestClockWithinALayer(t *testing.T) {
	p := mustProfile(t, "h200")
	withClock(p)
	const full, low, parts = 40 * des.Millisecond, 60 * des.Millisecond, 1000
	one, many := newClock(p), newClock(p)
	whole := one.run(0.7, full, low)
	sum := 0.0
	for range parts {
		sum += many.run(0.7, full/parts, low/parts)
	}
	if math.Abs(whole-sum/parts) > 2e-3 || math.Abs(one.limit-many.limit) > 2e-3 {
		t.Errorf("one layer: %g of the way to the full clock and a limit of %g, a thousand: %g and %g", whole, one.limit, sum/parts, many.limit)
	}
}

// What the card does between prefills says how soon its clock is back.
func TestClockRests(t *testing.T) {
	p := mustProfile(t, "h200")
	withClock(p)
	p.Clock.RestIdle, p.Clock.RestDense, p.Clock.RestLinears = us(5000), us(20000), us(40000)
	const gap = 3 * des.Millisecond
	back := func(waited, ranDense, ranLinears des.Time) float64 { // rests that have passed
		c := newClock(p)
		scale := math.Log((c.most - 0.7) / (c.most - 1))
		c.limit = 0.7
		c.waited, c.ranDense, c.ranLinears = waited, ranDense, ranLinears
		c.rested(gap)
		return math.Log((c.most-0.7)/(c.most-c.limit)) / scale
	}
	for _, c := range []struct {
		waited, ranDense, ranLinears des.Time
		want                         float64
	}{{0, 0, 0, 0.3}, {gap, 0, 0, 0.6}, {0, gap, 0, 0.15}, {0, 0, gap, 0.075}, {gap / 3, gap / 3, 0, 0.35}, {gap / 3, gap / 3, gap / 3, 0.275}} {
		if got := back(c.waited, c.ranDense, c.ranLinears); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("of %v, %v waiting, %v of dense attention and %v of linears, are %g rests, want %g", gap, c.waited, c.ranDense, c.ranLinears, got, c.want)
		}
	}
	p.Clock.RestIdle, p.Clock.RestDense, p.Clock.RestLinears = Figure{}, Figure{}, Figure{}
	for _, got := range []float64{back(gap, 0, 0), back(0, gap, 0), back(0, 0, gap)} {
		if math.Abs(got-0.3) > 1e-6 {
			t.Errorf("without a rest of its own it is %g rests, want what copies are", got)
		}
	}
}

// Rested linears keep the full clock for burst and then fall; worn ones rise by rest.
func TestRestedSeconds(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	p.Clock.RestIdle, p.Clock.RestDense = us(5000), us(20000)
	low := p.LinearsSeconds(m, 2048)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%s: %g s, want %g", what, got, want)
		}
	}
	near("at once", p.RestedSeconds(m, 2048, 0, 0, 0, 1), 0.9*low)
	near("shortly before the burst's end", p.RestedSeconds(m, 2048, 15e-3, 0, 0, 1), 0.9*low)
	near("long after it", p.RestedSeconds(m, 2048, 150e-3, 0, 0, 4), low)
	if got := p.RestedSeconds(m, 2048, 20e-3, 0, 0, 1); got < 0.91*low || got > 0.99*low {
		t.Errorf("shortly after the burst's end: %g s, want between %g and %g", got, 0.9*low, low)
	}
	near("after a long rest", p.RestedSeconds(m, 2048, 0, 1, RestCopies, 4), 0.9*low)
	dense, copies, idle := p.RestedSeconds(m, 2048, 0, 2e-3, RestDense, 4), p.RestedSeconds(m, 2048, 0, 2e-3, RestCopies, 4), p.RestedSeconds(m, 2048, 0, 2e-3, RestIdle, 4)
	if !(0.9*low < idle && idle < copies && copies < dense && dense < low) {
		t.Errorf("after 2 ms doing nothing %g s, of copies %g, of dense decode %g", idle, copies, dense)
	}
	p.Clock = Clock{}
	near("without figures", p.RestedSeconds(m, 2048, 0, 0, 0, 2), low)
}

// Alone linears take what was measured, beside attention they and it have one clock
// between theirs, and what waits for HBM no clock moves.
func TestLowClock(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	withClock(p)
	l, c := newLinears(p, m), newLowClock(p, m)
	alone, _ := l.seconds(2048)
	if got := c.chunk(&l, alone, 2048, 0); math.Abs(got.low/alone-1) > 1e-9 || math.Abs(got.full/alone-0.9) > 1e-9 || math.Abs(got.steady-0.7) > 1e-9 || got.attention != 0 {
		t.Errorf("alone: %+v, want %g at the full clock and %g at the low one", got, 0.9*alone, alone)
	}
	last := 1 / 0.7
	for _, attention := range []float64{0.1, 0.5, 1, 2, 10} {
		attention *= alone
		got := c.chunk(&l, alone, 2048, attention)
		slow := got.attention / attention
		if slow <= 1 || slow >= last {
			t.Errorf("%g s of attention: %g times as long, want between 1 and %g", attention, slow, last)
		}
		last = slow
		if want := math.Max(got.full, 0.7*alone*slow); math.Abs(got.low/want-1) > 1e-9 {
			t.Errorf("%g s of attention: linears of %g s, want %g", attention, got.low, want)
		}
		// Power, as the third power of the clock, has the limit's mean.
		x := 0.7 * alone / (0.7*alone + attention)
		if power := math.Pow(slow, -3) * (x*math.Pow(0.7, -3) + 1 - x); math.Abs(power-1) > 1e-9 {
			t.Errorf("%g s of attention: %g of the power that the card may draw", attention, power)
		}
	}
	one, _ := l.seconds(1)
	if got := c.chunk(&l, one, 1, 1e-4); got != (chunk{full: one, low: one, attention: 1e-4, steady: 1}) {
		t.Errorf("linears that wait for HBM: %+v, want %g at both clocks and attention of 1e-4", got, one)
	}
	// Between, alone linears take what was measured, and a longer chunk never less.
	before := 0.0
	for n := 1; n <= 4096; n++ {
		alone, _ := l.seconds(float64(n))
		if got := c.chunk(&l, alone, float64(n), 0); math.Abs(got.low/alone-1) > 1e-9 || got.full > got.low*(1+1e-9) {
			t.Fatalf("%d tokens without attention: %+v, want %g at the low clock", n, got, alone)
		}
		if got := p.ChunkSeconds(m, n, 2048); got < before*(1-1e-9) {
			t.Fatalf("a chunk of %d tokens takes %g s, one of a token less %g", n, got, before)
		} else {
			before = got
		}
	}
}

// What a clock's figures need of one another.
func TestClockFigures(t *testing.T) {
	for _, c := range []struct {
		path string
		bend func(p *Profile)
	}{
		{"clock.alone", func(p *Profile) { p.Clock.Rest = Figure{} }},
		{"clock.alone", func(p *Profile) { p.Clock.Settle = Figure{} }},
		{"clock.gain", func(p *Profile) { p.Clock.Gain = nil }},
		{"clock.gain", func(p *Profile) {
			p.Clock.Alone, p.Clock.Burst, p.Clock.Settle, p.Clock.Rest = Figure{}, Figure{}, Figure{}, Figure{}
		}},
		{"clock.alone", func(p *Profile) { p.Clock, p.Clock.RestIdle = Clock{}, us(1000) }},
		{"clock.alone", func(p *Profile) { p.Clock, p.Clock.Decode = Clock{}, count(0.1, "share") }},
		{"clock.decode.value", func(p *Profile) { p.Clock.Decode = count(1, "share") }},
		{"clock.gain[0].shape", func(p *Profile) { p.Clock.Gain[0].Shape = "llama2-7" }},
		{"clock.gain[1].tokens", func(p *Profile) { p.Clock.Gain = append(p.Clock.Gain, p.Clock.Gain[0]) }},
		{"clock.gain[0].value", func(p *Profile) { p.Clock.Gain[0].Value = 1.5 }},
	} {
		p := mustProfile(t, "h200")
		withClock(p)
		c.bend(p)
		if path, err := p.validate(); path != c.path || err == nil {
			t.Errorf("want an error of %s, got %q: %v", c.path, path, err)
		}
	}
}

// A prompt's first chunk is at the full clock as long as that lasts; late ones take what
// they take without pause; a clock that is always full changes nothing.
func TestPromptSeconds(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama2-7b")
	withClock(p)
	attention := func(prefix int) float64 { return p.PrefillSeconds(m, sim.Span{Query: 2048, Prefix: prefix}) }
	full := 0.9*p.LinearsSeconds(m, 2048) + attention(0)
	p.Clock.Burst = us(200_000)
	if got := p.PromptSeconds(m, 2048, 5, 0); math.Abs(got/full-1) > 1e-3 {
		t.Errorf("the first chunk at the full clock: %g s a layer, want %g", got, full)
	}
	withClock(p)
	first, low := p.PromptSeconds(m, 2048, 5, 0), p.ChunkSeconds(m, 2048, 0)
	if !(first > full && first < low) {
		t.Errorf("the first chunk takes %g s, want more than %g and less than %g", first, full, low)
	}
	if got, want := p.PromptSeconds(m, 2048, 5, 4), p.ChunkSeconds(m, 2048, 8192); math.Abs(got/want-1) > 0.01 {
		t.Errorf("the fifth chunk takes %g s, want nearly %g", got, want)
	}
	p.Clock = Clock{}
	if got, want := p.PromptSeconds(m, 2048, 5, 6), p.LinearsSeconds(m, 2048)+attention(2048); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("without a clock %g s, want %g", got, want)
	}
}
