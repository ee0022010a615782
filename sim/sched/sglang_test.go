package sched

import (
	"math"
	"strings"
	"testing"
)

func sglang(tokens, blocks int, conservativeness float64) Config {
	cfg := chunked("sglang", tokens, blocks)
	cfg.Conservativeness = conservativeness
	return cfg
}

// Prefills come before decodes and never run with them: the prompt in chunks first, then the next
// one in what it leaves.
func TestSGLangPrefillsFirst(t *testing.T) {
	g := newRig(t, sglang(10, 1000, 1))
	g.add(1, 4, 3)
	g.add(2, 12, 2)
	g.add(3, 3, 1)
	g.expect(t, "P1:0-4@0-3 P2:0-6@0-3", "P2:6-12@0-3 P3:0-3@0-3", "D1 D2", "D1", "")
}

// Ten blocks of four tokens. A prompt of 8 takes two; its output of 20 is reserved in full in the
// step that admits it: a request of 4 and 8 needs 4 + 8 + 20 + 1 tokens, nine blocks, and waits for
// its end. Later 0.7 of what is left is reserved: 4 + 8 + 14 + 1 fit beside two blocks, and with
// all 21 of an output of 22 they do not.
func TestSGLangReservesOutputs(t *testing.T) {
	g := newRig(t, sglang(100, 10, 1))
	g.add(1, 8, 20)
	g.add(2, 4, 8)
	g.expect(t, "P1:0-8@0-3")
	for range 19 {
		g.expect(t, "D1")
	}
	g.expect(t, "P2:0-4@0-3")
	for conservativeness, want := range map[float64]string{1: "P2:0-4@0-3", 2: "D1"} {
		g = newRig(t, sglang(100, 10, conservativeness))
		g.add(1, 8, 22)
		g.expect(t, "P1:0-8@0-3")
		g.add(2, 4, 8)
		g.expect(t, want)
	}
}

// Of the requests that have generated least, the one with the longest prompt is retracted, and it
// goes to the end of the queue. The ratio falls by 0.86 x 0.7 / 600 a decode step to 0.14 x 0.7,
// and after a retraction it is what the others have generated and 20 tokens each, of their
// outputs.
func TestSGLangRetracts(t *testing.T) {
	g := newRig(t, sglang(100, 7, 0.1)) // 28 tokens
	g.add(1, 5, 60)
	g.all[1].Output = 17
	g.expect(t, "P1:0-5@0-3", "D1")
	g.add(2, 3, 5)
	g.add(3, 4, 4)
	g.expect(t, "P2:0-3@0-3 P3:0-4@0-3")
	if want := 0.07 - 0.86*0.07/600; math.Abs(g.s.reserve.ratio-want) > 1e-12 {
		t.Errorf("ratio %v, want %v", g.s.reserve.ratio, want)
	}
	g.all[2].Output, g.all[3].Output = 60, 60 // outputs that no admission foresaw
	var steps []string
	for len(steps) < 30 {
		if steps = append(steps, g.step()); strings.HasPrefix(steps[len(steps)-1], "!") {
			break
		}
	}
	if last := steps[len(steps)-1]; last != "!3 D1 D2" {
		t.Fatalf("steps %q, want one that retracts request 3 and decodes the others", steps)
	}
	n := len(steps)
	generated := float64(g.all[1].Generated + g.all[2].Generated - 2 + 40) // before the step's tokens
	if want := min(1, generated/float64(17+60)); math.Abs(g.s.reserve.ratio-want) > 1e-12 {
		t.Errorf("ratio %v after %d steps, want %v", g.s.reserve.ratio, n, want)
	}
	g.add(4, 1, 1)
	if w := g.s.waiting; len(w) != 2 || w[0] != g.all[3] {
		t.Errorf("request 3 should wait before the next arrival: %v", w)
	}
	g.s.Repeated(10_000)
	if want := 0.14 * 0.07; math.Abs(g.s.reserve.ratio-want) > 1e-12 {
		t.Errorf("ratio %v after many decode steps, want %v", g.s.reserve.ratio, want)
	}
}
