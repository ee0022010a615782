package cost

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Terms of costs by hand, with round figures.

func byHand(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// A scatter kernel takes half of the GPU while it runs, 1 ms. Of 10 ms of compute, 0.5 ms are done
// in that time, which takes 0.5 ms longer. Of 0.25 ms, all are: they take 0.5 ms, half of the save.
func TestScatterSlowsComputeWhileItRuns(t *testing.T) {
	for _, c := range []struct{ compute, lost, left des.Time }{
		{10 * des.Millisecond, des.Millisecond / 2, 0},
		{des.Millisecond / 4, des.Millisecond / 4, des.Millisecond / 2},
	} {
		d, err := NewDevice(mustProfile(t, "h200"), mustModel(t, "lwm-7b"),
			DeviceOptions{SaveEngine: SaveGPU, SaveBufferBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		d.saver.contention = 0.5
		d.saves.push(1000, des.Millisecond)
		d.compute(c.compute, &d.phases.Linears)
		if d.phases.Linears != c.compute || d.phases.SaveStall != c.lost ||
			d.now != c.compute+c.lost || d.saves.work != c.left {
			t.Errorf("%v of compute end at %v, %v of them lost, with %v of the save left; want %v and %v",
				c.compute, d.now, d.phases.SaveStall, d.saves.work, c.lost, c.left)
		}
	}
}

// A call of 10 us, a link of 50 GB/s and a scatter of 10 GB/s: 4 MB take 10 + 400 us.
func TestFlashD2HScatters(t *testing.T) {
	p := mustProfile(t, "h200")
	gbs := func(v float64) hw.Figure { return count(v, "GB/s") }
	p.Link.D2H, p.Link.Nominal, p.Save.FlashCall = gbs(50), gbs(60), us(10)
	p.Save.Scatter = []hw.ScatterRow{{Threads: 4, Figure: gbs(10)}}
	saver, err := newSaver(p, SaveFlash, 4)
	if err != nil {
		t.Fatal(err)
	}
	byHand(t, "4 MB", saver.seconds(4000, 1000), 410e-6)
}

// Law 6: a link of 10 GB/s without anything else to pay brings 64 blocks of 16 KiB to DRAM in
// 104.8576 us, not sooner, half of them in half of that. Two saves follow one another.
func TestLaw6SavesTakeTheirTimeOnTheLink(t *testing.T) {
	d, err := NewDevice(mustProfile(t, "h200"), mustModel(t, "lwm-7b"),
		DeviceOptions{SaveEngine: SaveFlash, SaveBufferBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	link := &transfer{engine: SaveFlash, rate: 1e10, link: 1e10}
	d.saver = link
	save := func() {
		d.pending, d.bytes = 64, 16<<10
		d.enqueue()
	}
	const takes = 104858 * des.Nanosecond // rounded up
	save()
	begun := d.now
	if done := d.saves.done() - begun; done < takes-1 || done > takes {
		t.Errorf("a save is done after %v, want %v", done, takes)
	}
	d.pass(takes/2, &d.phases.Linears)
	byHand(t, "in half of the time", math.Round(d.saves.drained/1e4), math.Round(1<<19/1e4))
	save()
	if done := d.saves.done() - begun; done < 2*takes-2 || done > 2*takes {
		t.Errorf("two saves are done after %v, want %v", done, 2*takes)
	}
	d.pass(2*takes, &d.phases.Linears)
	if d.saves.lastDone-begun < 2*takes-2 || d.saves.drained != 2<<20 {
		t.Errorf("%g bytes are saved by %v", d.saves.drained, d.saves.lastDone-begun)
	}
}

// Top-p of 3 tokens over 1,000 logits: a launch, the row's cost of every logit, and 4 bytes of each
// token's logits at 1 GB/s.
func TestTopPReadsItsLogits(t *testing.T) {
	h := newLMHead(mustProfile(t, "h200"), mustModel(t, "lwm-7b"))
	without := h.of(8, 3)
	h.vocab = 1000
	h.topP = hw.Sampling{Launch: us(20), Row: ns(2), Rate: count(1, "GB/s")}
	byHand(t, "drawing", h.of(8, 3)-without, 20e-6+1000*2e-9+4*3*1000/1e9)
}

// The index of 4 heads over 256 queries: each reads K, 2 x 128 x 256 bytes, and the scores of 64
// queries, 4 x 64 x 256, at half of HBM's 1 TB/s. Attention to gathered columns runs at half of the
// rate. Groups of one pattern share a launch.
func TestSparsePrefillByHand(t *testing.T) {
	s := sparsePrefill{dim: 128, hbm: 1e12, dense: prefillAttention{heads: 4, kvHeads: 4, flops: 1e6,
		peak: peak{flops: 1e18, hbm: 1e12}},
		rows: map[pattern.Kind]sparseCost{pattern.VerticalSlash: {launch: 1e-6, efficiency: 1, index: 0.5,
			columns: 0.5, fused: true}}}
	s.dense.rate.add(128, 1e12)
	of := func(heads ...float64) (attention, index float64) {
		var groups []pattern.Group
		for _, n := range heads {
			groups = append(groups, pattern.Group{
				Head: pattern.Head{Kind: pattern.VerticalSlash, A: 100, B: 10}, Heads: n})
		}
		return s.of(groups, []sim.Span{{Query: 256}})
	}
	attention, index := of(4)
	byHand(t, "index", index, 4*(65536+65536)/0.5e12)
	h := pattern.Head{Kind: pattern.VerticalSlash, A: 100, B: 10}
	gathered := h.Gathered(256, 0)
	byHand(t, "attention", attention, 1e-6+(h.Pairs(256, 0)+gathered)*1e6/1e12)
	parts, _ := of(1, 3)
	byHand(t, "one launch", parts, attention)
}
