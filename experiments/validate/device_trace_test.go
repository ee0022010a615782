package validate

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A model that prices the steps which it has itself carried out, later and from
// a file, gives every one the time that it took, phase by phase: the batches are
// identical and the save queue's state is too.
func TestShadowPricesTheSameSteps(t *testing.T) {
	c := mustLoad(t, "", "gpu=h200", "system.engine=vllm-0.5",
		"workload.requests=6", "workload.rate=[0.3]",
		"offload.save_buffer_mib=8", "system.kv_gib=3", "prefill.max_prompt_tokens=5000",
		`system.preset=["vllm","vllm-so","sparseserve","vllm-psa","sparseserve-psa"]`, `longbench.datasets=["qasper","multifieldqa_en"]`)
	for _, p := range c {
		var shadow live.CallRecorder
		record := func(d sim.Device) sim.Device {
			shadow.Real = d
			return &shadow
		}
		if _, err := run.NewSimulator().RunOn(t.Context(), p, run.Sink{Requests: io.Discard},
			record); err != nil {
			t.Fatal(err)
		}
		model, err := llm.Load(p.Model)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := p.Machine()
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() *cost.Device {
			d, err := cost.NewDevice(gpu, &model, run.DeviceOptions(&p.System))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		text, err := marshalCalls(shadow.Steps)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := unmarshalCalls(text)
		if err != nil {
			t.Fatal(err)
		}
		times, err := live.Price(steps, fresh())
		if err != nil {
			t.Fatal(err)
		}
		if len(times) < 100 {
			t.Fatalf("%s: only %d steps", p.Name, len(times))
		}
		stalls := metrics.Phases{}
		for i := range times {
			for j := range steps[i].Layers {
				got, want := &steps[i].Layers[j], &shadow.Steps[i].Layers[j]
				if got.Moves.SavesInFlight != want.Moves.SavesInFlight || got.Moved != want.Moved {
					t.Fatalf("%s, step %d: %+v, want %+v", p.Name, i, *got, *want)
				}
			}
			if want := &shadow.Steps[i].Timing; times[i].Elapsed != want.Elapsed ||
				times[i].Phases != want.Phases {
				t.Fatalf("%s, step %d: %+v, want %+v", p.Name, i, times[i], *want)
			}
			stalls.Add(&times[i].Phases)
		}
		if p.System.Offload.On && (stalls.LoadStall == 0 || stalls.SaveStall == 0) {
			t.Errorf("%s: loads or saves never show: %+v", p.Name, stalls)
		}
		// A model that is slower has a clock of its own.
		slow := *gpu
		slow.Host.Step.Value *= 50
		late, err := cost.NewDevice(&slow, &model, run.DeviceOptions(&p.System))
		if err != nil {
			t.Fatal(err)
		}
		if times, err = live.Price(steps, late); err != nil ||
			times[50].Elapsed <= shadow.Steps[50].Timing.Elapsed {
			t.Errorf("%s: %v, step 50 takes %v, at a faster host %v", p.Name, err, times[50].Elapsed,
				shadow.Steps[50].Timing.Elapsed)
		}
		steps[3].Layers[0].Moves.Loads = -1
		steps[3].Layers[0].Moved = true
		if _, err := live.Price(steps, fresh()); err == nil ||
			!strings.Contains(err.Error(), "price of step 3: ") {
			t.Errorf("an impossible step: %v", err)
		}
	}
}

// Saves under way are recorded with a layer's moves; older runs lack them.
func TestCallsNoteLanding(t *testing.T) {
	text := []byte(`{"works":[{"tokens":1}],"layers":[[0,0,0,0,0,0],[1,0,0,1,7,0],[2,0,0,3,7,0]]}`)
	for range 2 {
		steps, err := unmarshalCalls(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range steps[0].Layers {
			if l.Moved != (i > 0) || l.Moves.SavesInFlight != (i == 2) {
				t.Errorf("layer %d: %+v", i, l)
			}
		}
		if text, err = marshalCalls(steps); err != nil {
			t.Fatal(err)
		}
	}
}

// Prefix blocks and shared blocks are recorded per layer: they differ between the layers of a step,
// and a step without any records none.
func TestCallsKeepLoadsOfPrefixes(t *testing.T) {
	want := []live.RecordedStep{
		{Works: []sim.Work{{Tokens: 1}}, Layers: []live.RecordedLayer{
			{Layer: 0, Moved: true, Moves: kv.Moves{Layer: 0, Loads: 5, Prefix: 1248}},
			{Layer: 1, Moved: true, Moves: kv.Moves{Layer: 1, Prefix: 7, Joined: 9}},
		}},
		{Works: []sim.Work{{Tokens: 1}}, Layers: []live.RecordedLayer{{Layer: 0}}},
	}
	text, err := marshalCalls(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"prefix"`, `"joined"`} {
		if n := bytes.Count(text, []byte(key)); n != 1 {
			t.Errorf("%d of 2 steps have %s, want the first: %s", n, key, text)
		}
	}
	got, err := unmarshalCalls(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i].Layers, want[i].Layers) {
			t.Errorf("step %d: %+v, want %+v", i, got[i].Layers, want[i].Layers)
		}
	}
}

func TestUnmarshalCallsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{":                                    "step 0: unexpected EOF",
		`{"index":7,"layers":[[0,1,0,0,0,0]]}`: "step 7: layer 0 has work 1 of 0",
		`{"index":8,"layers":[[0,0,0]]}`:       "step 8: a layer has 3 numbers, want 6 to 9",
		`{"index":9,"works":[{}],"layers":[[0,0,0,0,0,0]],"prefix":[1,2]}`: "step 9: prefix or " +
			"joined has 2 numbers for 1 layers",
		`{"index":9,"works":[{}],"layers":[[0,0,0,0,0,0]],"joined":[1,2]}`: "step 9: prefix or " +
			"joined has 2 numbers for 1 layers",
	} {
		if _, err := unmarshalCalls([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
