package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// layerOfRounds runs one layer of progressive attention on a card of its own.
func layerOfRounds(t interface{ Fatal(...any) }, p *hw.Profile, m *llm.Model, pipelined bool,
	rounds []sim.Round) metrics.Timing {
	d, err := NewDevice(p, m,
		DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true,
			Pipelined: pipelined})
	if err != nil {
		t.Fatal(err)
	}
	w := sim.Work{Tokens: 4, Decodes: 4, Sparse: true, Rounds: rounds}
	moves := kv.Moves{BlockBytes: 16384, InRounds: true}
	for _, r := range rounds {
		w.DecodeTokens += r.Tokens
		moves.Loads += r.Loads
	}
	err = d.Begin(&sim.Step{Requests: 4, Sampled: 4})
	if err == nil {
		err = d.Move(&moves)
	}
	if err == nil {
		err = d.Compute(0, &w)
	}
	timing, end := d.Finish()
	if err != nil || end != nil {
		t.Fatal(err, end)
	}
	return timing
}

// Three rounds by hand on the card that was measured: with nothing to load they are one launch;
// where each loads, the load of the second and third run during attention, and without the pipeline
// after it and after the CPU's look at the result.
func TestRoundsByHand(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	c := newCoster(p, m, &DeviceOptions{})
	const tokens = 4 * 16 * 32
	hits := []sim.Round{{Tokens: tokens}, {Tokens: tokens}, {Tokens: tokens}}
	got := layerOfRounds(t, p, m, true, hits)
	if want := c.launchOf(hits, 4); got.Phases.SparseAttention != want ||
		got.Phases.LoadStall != 0 {
		t.Errorf("no loads: %v of attention and %v of stall, want %v and none",
			got.Phases.SparseAttention, got.Phases.LoadStall, want)
	}

	loader, err := newLoader(p, LoadFlash)
	if err != nil {
		t.Fatal(err)
	}
	loader.over(0)
	first := c.launchOf(hits[:1], 4)
	next := first
	latency := nanoseconds(p.Host.ContinueLatency.SI())
	var load des.Time
	var misses []sim.Round
	for _, n := range []int64{8, 64} {
		load = nanoseconds(loader.seconds(n, 16384))
		misses = []sim.Round{{Tokens: tokens, Loads: n}, {Tokens: tokens, Loads: n},
			{Tokens: tokens, Loads: n}, {Loads: n}}
		got = layerOfRounds(t, p, m, true, misses)
		// Attention of the first begins after one load; the loads follow each other
		// as long as they are not two rounds ahead of the last stop that the CPU knows.
		second := max(2*load, load+first) + next
		third := max(max(2*load, load+first+latency)+load, second) + next
		if third != got.Phases.SparseAttention+got.Phases.LoadStall {
			t.Errorf("pipelined, %d blocks a round: %v + %v, want %v", n, got.Phases.SparseAttention,
				got.Phases.LoadStall, third)
		}
	}
	got = layerOfRounds(t, p, m, false, misses[:3])
	if want := 3*load + first + 2*next; got.Phases.SparseAttention+got.Phases.LoadStall != want {
		t.Errorf("not pipelined: %v + %v, want %v", got.Phases.SparseAttention, got.Phases.LoadStall,
			want)
	}
	if got.Phases.Host < 2*latency {
		t.Errorf("host %v, two stops take %v", got.Phases.Host, 2*latency)
	}
}

// Loads for a round that no head reached delay the next layer, its loads or its rounds, and nothing
// else.
func TestLoadsInVainKeepTheLinkBusy(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "lwm-7b")
	one := func(vain int64, follows func(d *Device) error) (alone, next des.Time) {
		d, err := NewDevice(p, m,
			DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash, Offload: true,
				Pipelined: true})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Decodes: 4, DecodeTokens: 2048, Sparse: true,
			Rounds: []sim.Round{{Tokens: 2048, Loads: 64}, {Loads: vain}}[:1+min(1, vain)]}
		if err := d.Begin(&sim.Step{Requests: 4}); err != nil {
			t.Fatal(err)
		}
		at := func(f func() error) des.Time {
			before := d.now
			if err := f(); err != nil {
				t.Fatal(err)
			}
			return d.now - before
		}
		at(func() error { return d.Move(&kv.Moves{Loads: 64 + vain, BlockBytes: 16384, InRounds: true}) })
		alone = at(func() error { return d.Compute(0, &w) })
		return alone, at(func() error { return follows(d) })
	}
	for what, follows := range map[string]func(d *Device) error{
		"loads": func(d *Device) error { return d.Move(&kv.Moves{Loads: 64, BlockBytes: 16384}) },
		"rounds": func(d *Device) error {
			return d.Compute(1, &sim.Work{Decodes: 4, DecodeTokens: 2048, Sparse: true,
				Rounds: []sim.Round{{Tokens: 2048}}})
		},
	} {
		alone, next := one(0, follows)
		with, held := one(4096, follows)
		if with != alone {
			t.Errorf("the layer takes %v, %v without loads in vain", with, alone)
		}
		if held <= next {
			t.Errorf("the next %s take %v, %v without loads in vain", what, held, next)
		}
	}
}

// A pipeline is never slower, never faster than its longer half, and the phases add up.
func TestPipelineProperties(t *testing.T) {
	profiles := []*hw.Profile{mustProfile(t, "h200"), mustProfile(t, "a100-40gb")}
	m := mustModel(t, "lwm-7b")
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(profiles).Draw(t, "gpu")
		loader, err := newLoader(p, LoadFlash)
		if err != nil {
			t.Fatal(err)
		}
		loader.over(0)
		rounds := make([]sim.Round, rapid.IntRange(1, 8).Draw(t, "rounds"))
		var loads des.Time
		var bytes int64
		for i := range rounds {
			rounds[i] = sim.Round{Tokens: int64(rapid.IntRange(1, 4096).Draw(t, "tokens")),
				Loads: int64(rapid.SampledFrom([]int{0, 1, 50, 4000}).Draw(t, "loads"))}
			if n := rounds[i].Loads; n > 0 {
				loads += nanoseconds(loader.seconds(n, 16384))
			}
			bytes += rounds[i].Tokens * m.LayerKVBytesPerToken()
		}
		on, off := layerOfRounds(t, p, m, true, rounds), layerOfRounds(t, p, m, false, rounds)
		if on.Elapsed > off.Elapsed {
			t.Fatalf("pipelined %v, one after the other %v", on.Elapsed, off.Elapsed)
		}
		if on.Phases.SparseAttention != off.Phases.SparseAttention {
			t.Fatalf("attention of %v and %v", on.Phases.SparseAttention, off.Phases.SparseAttention)
		}
		attended := on.Phases.SparseAttention + on.Phases.LoadStall
		if attended+des.Time(len(rounds)) < loads ||
			attended.Seconds() < float64(bytes)/p.GPU.HBMBandwidth.SI() {
			t.Fatalf("%v, loads alone take %v, the bytes of attention %v s", attended, loads,
				float64(bytes)/p.GPU.HBMBandwidth.SI())
		}
		for _, got := range []metrics.Timing{on, off} {
			if got.Phases.Sum() != got.Elapsed {
				t.Fatalf("phases add up to %v of %v", got.Phases.Sum(), got.Elapsed)
			}
		}
	})
}
