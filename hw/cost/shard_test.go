package cost

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Shards hold all of a model, and no more than copied norms, KV heads and padding of the vocabulary
// beyond it.
func TestShardsHoldTheModel(t *testing.T) {
	for _, name := range classModels {
		m := mustModel(t, name)
		for n := 1; n <= 8; n *= 2 {
			s, err := m.Shard(n)
			if m.QHeads%n != 0 || m.FFN%n != 0 || m.KVHeads%n != 0 && n%m.KVHeads != 0 {
				if err == nil {
					t.Errorf("%s on %d GPUs: no error", name, n)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s on %d GPUs: %v", name, n, err)
			}
			if got, want := int64(n)*s.KVBytesPerToken(), m.KVBytesPerToken(); got < want ||
				n <= m.KVHeads && got != want {
				t.Errorf("%s on %d GPUs: %d bytes of KV a token, whole %d", name, n, got, want)
			}
			if got, want := float64(n)*float64(s.WeightBytes()), float64(m.WeightBytes()); got < want ||
				got > 1.06*want && n <= m.KVHeads {
				t.Errorf("%s on %d GPUs: %.4g bytes of weights, whole %.4g", name, n, got, want)
			}
		}
	}
	m := mustModel(t, "llama3-8b")
	for n, want := range map[int]string{3: "want 1, 2, 4 or 8", 0: "want 1, 2, 4 or 8",
		64: "do not divide the 32 query heads"} {
		_, err := m.Shard(n)
		wantError(t, "shards", err, want)
	}
}

// An all-reduce costs more with more bytes and more GPUs, and no less than its bytes at the links'
// nominal speed (law 10).
func TestLaw10AllReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpu := rapid.SampledFrom(hw.CardNames()).Draw(t, "card")
		p, err := hw.Load(gpu, "vllm-0.15", nil)
		if err != nil {
			t.Fatal(err)
		}
		bytes, before := rapid.Float64Range(1, 1e10).Draw(t, "bytes"), int64(0)
		for n := 2; n <= 8; n *= 2 {
			a, err := newAllReduce(p, &llm.Model{Ranks: n})
			if err != nil {
				t.Fatal(err)
			}
			got := a.of(bytes)
			floor := 2 * float64(n-1) / float64(n) * bytes / p.Interconnect.Nominal.SI()
			if got.Seconds() < floor || int64(got) < before || a.of(2*bytes) < got {
				t.Fatalf("%s, %d GPUs, %g bytes: %v, floor %g s, on half as many %d ns, twice as many bytes %v",
					gpu, n, bytes, got, floor, before, a.of(2*bytes))
			}
			before = int64(got)
		}
	})
}

// A step on two GPUs takes between half of one GPU's and its time, and it has two all-reduces per
// layer, one of the embeddings and a gather of the logits.
func TestStepOfShards(t *testing.T) {
	p, err := hw.Load("h100-80gb", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustModel(t, "codellama-34b")
	const batch, context = 16, 2048
	step := func(n int) metrics.Timing {
		shard, err := m.Shard(n)
		if err != nil {
			t.Fatal(err)
		}
		d, err := NewDevice(p, &shard, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w := sim.Work{Tokens: batch, Decodes: batch, DecodeTokens: batch * context}
		return runStep(t, d, &sim.Step{Requests: batch, Sampled: batch}, m.Layers, &w, 0, 0)
	}
	one, two, four := step(1), step(2), step(4)
	if two.Elapsed < one.Elapsed/2 || two.Elapsed >= one.Elapsed || four.Elapsed >= two.Elapsed {
		t.Errorf("one GPU %v, two %v, four %v", one.Elapsed, two.Elapsed, four.Elapsed)
	}
	hidden := float64(batch * m.Hidden * 2)
	a, _ := newAllReduce(p, &llm.Model{Ranks: 2})
	want := float64(int64(2*m.Layers+1))*a.of(hidden).Seconds() +
		a.of(batch*float64(m.Vocab)).Seconds()
	if got := two.Phases.AllReduce.Seconds(); math.Abs(got/want-1) > 1e-6 ||
		one.Phases.AllReduce != 0 {
		t.Errorf("all-reduces take %g s, want %g; on one GPU %v", got, want, one.Phases.AllReduce)
	}
	shard, _ := m.Shard(2)
	p.Interconnect.Nominal = hw.Figure{}
	d, err := NewDevice(p, &shard, DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := sim.Work{Tokens: batch, Decodes: batch, DecodeTokens: batch * context}
	slow := runStep(t, d, &sim.Step{Requests: batch, Sampled: batch}, m.Layers, &w, 0, 0)
	notes := fmt.Sprint(d.ExtrapolationNotes(slow.Extrapolated))
	if slow.Phases.AllReduce <= two.Phases.AllReduce ||
		!strings.Contains(notes, "has no interconnect.nominal") {
		t.Errorf("over the host's link all-reduces take %v, over NVLink %v; %s",
			slow.Phases.AllReduce, two.Phases.AllReduce, notes)
	}
	p.Grids = nil
	_, err = NewDevice(p, &shard, DeviceOptions{})
	wantError(t, "no interconnect", err, "have no all-reduce of 2 GPUs")
}
