package validate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sparseserve/cuda"
	"sparseserve/cuda/emulator"
	"sparseserve/cuda/live"
	"sparseserve/experiments/config"
	"sparseserve/experiments/run"
	"sparseserve/experiments/testkit"
	"sparseserve/hw"
	"sparseserve/sim"
)

// A model that prices the steps which it has itself carried out, later and from
// a file, gives every one the time that it took, phase by phase: the batches are
// identical and the save queue's state is too.
func TestShadowPricesTheSameSteps(t *testing.T) {
	c := mustLoad(t, "", "gpu=h200", "workload.requests=6", "workload.rate=[0.3]", "system.save_buffer_mib=8", "system.kv_gib=3", "system.max_prompt_tokens=5000",
		`system.preset=["vllm","vllm-so","sparseserve","vllm-psa","sparseserve-psa"]`, `workload.datasets=["qasper","multifieldqa_en"]`)
	for _, p := range c.Points() {
		var shadow live.CallRecorder
		record := func(d sim.Device) sim.Device {
			shadow.Real = d
			return &shadow
		}
		if _, err := run.NewSimulator().RunOn(t.Context(), p, run.Sink{Requests: io.Discard}, record); err != nil {
			t.Fatal(err)
		}
		model, err := hw.LoadModel(p.Model)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := p.Machine()
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() *hw.Device {
			d, err := hw.NewDevice(gpu, &model, run.DeviceOptions(&p.System))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		text, err := marshalCalls(shadow.Steps, p.System.LoadEngine == hw.LoadMemcpy)
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
		stalls, places := sim.Phases{}, int64(0)
		for i := range times {
			for j := range steps[i].Layers {
				got, want := &steps[i].Layers[j], &shadow.Steps[i].Layers[j]
				places += got.Moves.UniquePages
				if got.Moves.SavesInFlight != want.Moves.SavesInFlight || got.Moved != want.Moved {
					t.Fatalf("%s, step %d: %+v, want %+v", p.Name, i, *got, *want)
				}
			}
			if want := &shadow.Steps[i].Timing; times[i].Elapsed != want.Elapsed || times[i].Phases != want.Phases {
				t.Fatalf("%s, step %d: %+v, want %+v", p.Name, i, times[i], *want)
			}
			if got, want := &steps[i].Step, &shadow.Steps[i].Step; got.FreedBlocks != want.FreedBlocks {
				t.Fatalf("%s, step %d: %+v, want %+v", p.Name, i, *got, *want)
			}
			stalls.Add(&times[i].Phases)
		}
		if p.System.Offload && (stalls.LoadStall == 0 || stalls.SaveStall == 0) {
			t.Errorf("%s: loads or saves never show: %+v", p.Name, stalls)
		}
		if p.System.Offload && p.System.LoadEngine == hw.LoadMemcpy && places == 0 {
			t.Errorf("%s: no load says how many places it has", p.Name)
		}
		// A model that is slower has a clock of its own.
		slow := *gpu
		slow.Host.Step.Value *= 50
		late, err := hw.NewDevice(&slow, &model, run.DeviceOptions(&p.System))
		if err != nil {
			t.Fatal(err)
		}
		if times, err = live.Price(steps, late); err != nil || times[50].Elapsed <= shadow.Steps[50].Timing.Elapsed {
			t.Errorf("%s: %v, step 50 takes %v, at a faster host %v", p.Name, err, times[50].Elapsed, shadow.Steps[50].Timing.Elapsed)
		}
		steps[3].Layers[0].Moves.Loads = -1
		steps[3].Layers[0].Moved = true
		if _, err := live.Price(steps, fresh()); err == nil || !strings.Contains(err.Error(), "price of step 3: ") {
			t.Errorf("an impossible step: %v", err)
		}
	}
}

// Saves under way are noted beside a layer's moves; runs from before they were say
// nothing of them.
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
		if text, err = marshalCalls(steps, true); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnmarshalCallsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{":                                    "step 0: unexpected EOF",
		`{"index":7,"layers":[[0,1,0,0,0,0]]}`: "step 7: layer 0 has work 1 of 0",
		`{"index":8,"layers":[[0,0,0]]}`:       "step 8: a layer has 3 numbers, want 6 or 8",
	} {
		if _, err := unmarshalCalls([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// tinyValidation validates the tiny model in dir. Runs is how many machines it
// asks for; the failing one, counted from 1, is out of order.
func tinyValidation(t *testing.T, dir string, runs *int, failing int) *Validation {
	t.Helper()
	sweep, err := config.LoadSweep("../validate-tiny.toml", []string{`model="../testdata/tiny"`, "workload.requests=3"})
	if err != nil {
		t.Fatal(err)
	}
	*runs = -1 // the first asks for the name
	simulator := run.NewSimulator()
	return &Validation{
		Dir: dir, Sweep: sweep, Program: "test", LiveProgram: "live test", Simulate: simulator.Run, Workers: 1,
		Live: &run.Live{Simulator: simulator, SplitEvery: 2, On: func(do func(live.Machine) error) error {
			if *runs++; *runs == failing && failing > 0 {
				return errors.New("out of order")
			}
			return do(emulator.New(emulator.Config{}))
		}},
	}
}

// savers is a machine that notes how many threads savers are given.
type savers struct {
	live.Machine
	threads *[]int
}

func (m savers) SaverCreate(threads int, chunkBytes int64, stages int) (cuda.Saver, error) {
	*m.threads = append(*m.threads, threads)
	return m.Machine.SaverCreate(threads, chunkBytes, stages)
}

// A live run saves with as many threads as its simulation.
func TestLiveSavesWithTheProfilesThreads(t *testing.T) {
	var runs int
	v := tinyValidation(t, t.TempDir(), &runs, 0)
	var got []int
	v.Live.(*run.Live).On = func(do func(live.Machine) error) error { return do(savers{emulator.New(emulator.Config{}), &got}) }
	if _, _, err := v.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	gpu, err := hw.Load("h200", "sparseserve-live", nil) // as validate-tiny.toml says
	if err != nil {
		t.Fatal(err)
	}
	want := int(gpu.Save.Threads.SI())
	if len(got) == 0 || want == 0 || slices.ContainsFunc(got, func(n int) bool { return n != want }) {
		t.Errorf("savers of %d threads, want %d each", got, want)
	}
}

func TestValidation(t *testing.T) {
	dir := t.TempDir()
	var runs int

	// A live run that fails is named, and the others are kept.
	_, _, err := tinyValidation(t, dir, &runs, 2).Do(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "live run of vllm-s-4-s1: vllm-s-4-s1: out of order\n4 of 5 live runs are kept in ") {
		t.Fatalf("error %v", err)
	}
	if runs != 5 {
		t.Errorf("%d live runs", runs)
	}

	// The same command makes the one that is missing, and clears away what a
	// killed process has left.
	left := filepath.Join(dir, liveFolder, ".0123.tmp")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	report, notes, err := tinyValidation(t, dir, &runs, 0).Do(t.Context())
	if err != nil || len(notes) > 0 || runs != 1 {
		t.Fatalf("%d live runs, notes %q, error %v", runs, notes, err)
	}
	checkTiny(t, report)
	if _, err := os.Stat(left); err == nil {
		t.Error("what a killed process left is still there")
	}

	// All is kept now.
	want := testkit.Tree(t, dir)
	if _, _, err = tinyValidation(t, dir, &runs, 0).Do(t.Context()); err != nil || runs != 0 {
		t.Errorf("%d live runs, error %v", runs, err)
	}
	if got := testkit.Tree(t, dir); !reflect.DeepEqual(got, want) {
		t.Error("files differ when nothing runs")
	}

	// The table follows from the files.
	for _, name := range []string{validationJSON, validationCSV} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Recompute(dir); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Tree(t, dir); !reflect.DeepEqual(got, want) {
		t.Error("files differ when computed anew")
	}

	// Another program runs everything again, unless it is told to take what is
	// there; that is on no machine at all.
	later := tinyValidation(t, dir, &runs, 0)
	later.LiveProgram, later.Program, later.Kept = "later", "later", true
	later.Live.(*run.Live).On = func(func(live.Machine) error) error { return errors.New("no machine here") }
	if report, _, err = later.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkTiny(t, report)
	for _, name := range []string{validationJSON, validationCSV} {
		if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != want[name] {
			t.Errorf("%s differs with live runs of another program", name)
		}
	}
	// Runs of before a key came have another digest, and are taken for what their
	// configuration says today; another configuration is not.
	manifests, err := filepath.Glob(filepath.Join(dir, liveFolder, "*", run.ManifestFile))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%d manifests, %v", len(manifests), err)
	}
	original := map[string][]byte{}
	for _, path := range manifests {
		if original[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		other := regexp.MustCompile(`"hash": "[^"]*"`).ReplaceAll(original[path], []byte(`"hash": "0"`))
		if err := os.WriteFile(path, other, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if report, _, err = later.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, text := range original {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkTiny(t, report)
	other := *later
	if other.Sweep, err = config.LoadSweep("../validate-tiny.toml", []string{`model="../testdata/tiny"`, "workload.requests=4"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "are not kept") {
		t.Errorf("runs of another configuration: %v", err)
	}

	later.Kept = false
	if _, _, err := later.Do(t.Context()); err == nil || err.Error() != "no machine here" {
		t.Errorf("without a machine: %v", err)
	}

	// A damaged run is made again.
	path, err := filepath.Glob(filepath.Join(dir, liveFolder, "*", run.RequestsCSV+".gz"))
	if err != nil || len(path) != 5 {
		t.Fatalf("%d tables, %v", len(path), err)
	}
	if err := os.WriteFile(path[0], []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Recompute(dir); err == nil || !strings.Contains(err.Error(), "requests.csv.gz") {
		t.Errorf("from a damaged table: %v", err)
	}
	if _, notes, err = tinyValidation(t, dir, &runs, 0).Do(t.Context()); err != nil || runs != 1 || len(notes) != 1 || !strings.Contains(notes[0], "requests.csv.gz is damaged") {
		t.Errorf("%d live runs, notes %q, error %v", runs, notes, err)
	}
}

// checkTiny checks what does not depend on how fast this machine is.
func checkTiny(t *testing.T, r *Report) {
	t.Helper()
	if r.Device != "reference device in Go" || len(r.Runs) != 5 {
		t.Fatalf("%d runs on %q", len(r.Runs), r.Device)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Live.Completed != 3 || run.Simulated.Completed != 3 || run.Live.TTFT.Mean <= 0 {
			t.Errorf("%s: %d and %d requests completed", run.Run, run.Live.Completed, run.Simulated.Completed)
		}
		for _, metric := range []string{"ttft_mean_s", "tbt_p99_s", "steps", "step_decode_ratio", "step_mixed_abs_error_p95", "phase_decode_linears_s"} {
			if c, ok := run.Of(metric); !ok || c.Error == nil {
				t.Errorf("%s: %s is %+v", run.Run, metric, c)
			}
		}
		rounds, ok := run.Of("rounds_per_layer")
		if _, too := run.Of("blocks_ahead_per_step"); ok != (run.System == "sparseserve-psa") || too != ok || ok && rounds.Live <= 1 {
			t.Errorf("%s: rounds %+v", run.Run, rounds)
		}
	}
}
