package live_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/sim"
)

// alike are cases that must give the same logits: the first of each, and ways to carry it out.
var alike = map[string][]string{
	"psa in HBM": {"psa", "psa, small", "psa, in turns", "psa, memcpy",
		"psa, memcpy in turns", "psa, layer", "psa, layer in turns", "psa, per-layer pools"},
	"psa, heads together in HBM": {"psa, heads together", "psa, heads together, small",
		"psa, heads together in turns"},
	"dense": {"psa, everything", "psa, everything in HBM"},
}

// Progressive attention gives the same whether its blocks are loaded or are in HBM, overlapping
// attention or alternating with it, by whichever engine, and whatever has been evicted; over every
// block it gives what dense attention does.
func TestProgressiveAttentionIsAlikeHoweverItRuns(t *testing.T) {
	all := cases()
	models := []string{"mha", "gqa"}
	if testing.Short() {
		models = models[:1] // of several KV heads, whose lists end apart
	}
	for _, model := range models {
		for first, others := range alike {
			t.Run(model+"/"+first, func(t *testing.T) {
				t.Parallel()
				want := onSoft(t, all[model+"/"+first], emulator.Config{Late: true, Seed: 21})
				for _, name := range others {
					if c := all[model+"/"+name]; c != nil {
						// At once, as the tests against the reference run late: the pipeline hears
						// early that all is done.
						onSoft(t, c, emulator.Config{}).alike(t, name, want)
					}
				}
			})
		}
	}
}

func onSoft(t *testing.T, c *scenario, cfg emulator.Config) *run {
	m := emulator.New(cfg)
	defer m.Close()
	return c.run(t, m)
}

// alike compares the logits of two runs, of each request up to where rounding has it take another
// token.
func (r *run) alike(t *testing.T, name string, want *run) {
	t.Helper()
	compared, all := 0, 0
	for id, logits := range want.logits {
		positions := positionsOf(logits)
		all += len(positions)
		for _, p := range positions {
			compared++
			if err := near(r.logits[id][p], cuda.Floats(logits[p])); err != nil {
				t.Fatalf("%s: request %d, position %d: %v", name, id, p, err)
			}
			if r.tokens[id][p+1] != want.tokens[id][p+1] {
				break
			}
		}
	}
	if all == 0 || compared < all*3/4 {
		t.Errorf("%s: only %d of %d tokens could be compared", name, compared, all)
	}
	for p, list := range want.lists {
		if other, ok := r.lists[p]; ok && !slices.Equal(list, other) {
			t.Fatalf("%s: %+v attends to %v in one run, to %v in the other", name, p, list, other)
		}
	}
}

func positionsOf(logits map[int][]cuda.Half) (at []int) {
	for p := range logits {
		at = append(at, p)
	}
	slices.Sort(at)
	return at
}

// progressed checks what progressive attention counted, on the device.
func (r *run) progressed(t *testing.T) {
	t.Helper()
	if !r.spec.Progressive() {
		if len(r.used) > 0 {
			t.Errorf("%d counts of progressive attention, which it is not", len(r.used))
		}
		return
	}
	short, later := 0, 0
	for p, used := range r.used {
		if n := len(r.lists[p]); used != n {
			t.Fatalf("%+v: attended to %d blocks of %d", p, used, n)
		}
		if used < p.position/r.spec.BlockTokens+1 {
			short++
		}
		if used > r.spec.Selection.Microbatch {
			later++
		}
	}
	for p := range r.lists {
		if _, ok := r.used[p]; ok != (p.layer >= r.spec.Selection.DenseLayers) {
			t.Fatalf("%+v: progressive attention ran: %v", p, ok)
		}
	}
	r.together(t)
	if all := r.everything(); all && short > 0 || !all && short < len(r.used)/4 {
		t.Errorf("%d of %d lists end early", short, len(r.used))
	}
	if later < len(r.used)/4 && r.spec.Selection.Microbatch <= 10 {
		t.Errorf("%d of %d lists go beyond the first round", later, len(r.used))
	}
	did := r.counters[len(r.counters)-1]
	if did.Rounds == 0 || r.evicts && (r.spec.Selection.Pipelined &&
		!r.everything()) != (did.Ahead > 0) {
		t.Errorf("%d rounds, %d blocks loaded for rounds that never came", did.Rounds, did.Ahead)
	}
}

// together checks that the heads of a decode's layer end with one round where the system has them
// so, and that they do not where each ends by itself.
func (r *run) together(t *testing.T) {
	t.Helper()
	apart := 0
	for p, used := range r.used {
		first := p
		first.head = 0
		if m := r.spec.Selection.Microbatch; (used+m-1)/m == (r.used[first]+m-1)/m {
			continue
		}
		if apart++; r.spec.Selection.Stop == "layer" {
			t.Fatalf("%+v: %d blocks, head 0 has %d: rounds of %d do not end together", p, used,
				r.used[first], r.spec.Selection.Microbatch)
		}
	}
	if r.spec.Selection.Stop == sim.PSAStopHead && r.shape.KVHeads > 1 && !r.everything() &&
		apart == 0 {
		t.Error("no head ends in a round of its own")
	}
}

// everything means that a case's lists end with the last block: no weight is too small, or the
// first round has them all.
func (c *scenario) everything() bool {
	return c.spec.Selection.Epsilon > 0.999999 || c.spec.Selection.Microbatch > 10
}

// upset is a machine on which no stream waits for another.
type upset struct{ live.Machine }

func (upset) StreamWait(cuda.Stream, cuda.Event) error { return nil }

// Without the waits between the stream that loads and the one that attends, attention reads what is
// not there yet, and that shows.
func TestPipelineNeedsItsWaits(t *testing.T) {
	c := cases()["mha/psa, memcpy"]
	for seed := range uint64(8) {
		m := emulator.New(emulator.Config{Late: true, Seed: seed})
		defer m.Close()
		if _, _, err := c.onMachine(t.Context(), upset{m}, &counted{}); err != nil {
			return
		}
	}
	t.Error("eight runs without a fault")
}

// torn is a machine on which the n-th of one kind of call fails.
type torn struct {
	live.Machine
	call string
	left int
}

func (m *torn) Launch(op cuda.Operation, s cuda.Stream) error {
	if call := cuda.Function(op); call == m.call {
		if m.left--; m.left == 0 {
			return illegalAccess(call)
		}
	}
	return m.Machine.Launch(op, s)
}

func TestProgressiveFailureNamesCallStepAndLayer(t *testing.T) {
	for name, call := range map[string]string{"mha/psa in HBM": "ss_psa",
		"gqa/psa, in turns": "ss_psa", "mha/psa, small": "ss_psa"} {
		m := emulator.New(emulator.Config{})
		defer m.Close()
		_, _, err := cases()[name].onMachine(t.Context(), &torn{m, call, 9}, &counted{})
		if !regexp.MustCompile(`live: step \d+, layer \d+: ` + call + `: CUDA error: an illegal memory access`).MatchString(fmt.Sprint(err)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
