package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// tinyLive are the arguments of a short run of a tiny model.
func tinyLive(t *testing.T, more ...string) []string {
	t.Helper()
	model, err := filepath.Abs("../../experiments/testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"simulate", "--set", "model=" + model, "--set", "gpu=h200", "--set",
		"workload.rate=4", "--set", "workload.requests=4",
		"--set", "workload.output_scale=0.2", "--set", "system.preset=sparseserve", "--set",
		"system.kv_gib=0.02", "--set", "system.dram_gib=1",
		"--set", "selection.budget_tokens=192", "--set", "prefill.max_prompt_tokens=250",
		"--set", "prefill.over_length=truncate", "--set",
		"system.max_tokens=64", "--set", "prefill.chunk_tokens=64",
		"--set", "system.max_requests=16", "--set", "offload.save_buffer_mib=1"}, more...)
}

func only(t *testing.T, text string) (s metrics.Summary) {
	t.Helper()
	var all []metrics.Summary
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v, %d runs: %s", err, len(all), text)
	}
	return all[0]
}

// The model selects, the recording is replayed by the simulator, and the summary has the host's
// work.
func TestLiveSelectRecordReplay(t *testing.T) {
	live := tinyLive(t, "--live=reference", "--select=model", "--record", "sel.bin",
		"--out", "out/default")
	replay := tinyLive(t, "--json", "--set", "selection.recording=sel.bin", "--set",
		"simulation.heads=full")
	t.Chdir(t.TempDir())
	status, out, errs := runHere(t.Context(), run.NewSimulator().Run, live...)
	if status != 0 || !strings.Contains(out, "sparseserve") {
		t.Fatalf("status %d, stderr %q\n%s", status, errs, out)
	}
	text, err := os.ReadFile("out/default/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	was := only(t, string(text))
	if l := was.Live; l == nil || l.RoundTrips == 0 || l.LookupS <= 0 || l.BookkeepingMSPerStep <= 0 ||
		was.Completed != 4 {
		t.Fatalf("%+v", was)
	}
	status, out, errs = runHere(t.Context(), run.NewSimulator().Run, replay...)
	if status != 0 {
		t.Fatalf("replay: status %d, stderr %q", status, errs)
	}
	if is := only(t, out); is.Completed != 4 || is.Live != nil || is.D2HBytes != was.D2HBytes {
		t.Errorf("replayed %+v\nlive %+v", is, was)
	}
	status, _, errs = runHere(t.Context(), run.NewSimulator().Run,
		append(replay, "--set", "seed=2")...)
	if want := "selection.recording: seed: 1 when selections were recorded, 2 now"; status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %q, want %q", status, errs, want)
	}
	status, _, errs = runHere(t.Context(), run.NewSimulator().Run,
		append(replay, "--set", "system.block_tokens=16")...)
	want := "selection.recording: system.block_tokens: 32 when selections were recorded, 16 now"
	if status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %q, want %q", status, errs, want)
	}
	status, _, errs = runHere(t.Context(), run.NewSimulator().Run,
		append(replay, "--set", "selection.recording=nowhere.bin")...)
	if want := "selection.recording = \"nowhere.bin\": no such file"; status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %q, want %q", status, errs, want)
	}
	if err := os.Truncate("sel.bin", 200); err != nil {
		t.Fatal(err)
	}
	status, _, errs = runHere(t.Context(), run.NewSimulator().Run, replay...)
	if want := "cut short"; status != 1 || !strings.Contains(errs, want) {
		t.Errorf("status %d, %q, want %q", status, errs, want)
	}
}

func TestLiveFlagsNeedLive(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--select=model"}, "--select is for --live"},
		{[]string{"--pace"}, "--pace is for --live"},
		{[]string{"--record", "x"}, "--record is for --live"},
		{[]string{"--live=reference", "--record", "x"},
			"a recording holds one run, this is 20"},
		{[]string{"--select=best"}, "process"},
	} {
		status, _, errs := runHere(t.Context(), pretend, append([]string{"simulate"}, c.args...)...)
		if status != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %q", c.args, status, errs)
		}
	}
}

// An engine whose linears are padded otherwise than the server's is refused, as its price is not
// the server's.
func TestLiveRefusesAnotherGrid(t *testing.T) {
	engine, err := hw.LoadEngine("sparseserve-live")
	if err != nil {
		t.Fatal(err)
	}
	engine.LinearGrid = 32
	path := filepath.Join(t.TempDir(), "own.toml")
	if err := engine.Write(path, engine.Title); err != nil {
		t.Fatal(err)
	}
	args := tinyLive(t, "--live=reference", "--out", "out", "--set", "system.engine="+path)
	status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
	if status != 1 || !strings.Contains(errs, path) || strings.Count(errs, "\n") != 1 ||
		!strings.Contains(errs, "pads linears to 32 tokens, a live run to 64") {
		t.Errorf("status %d, %q", status, errs)
	}
}

// Too little memory is said before anything runs, with a table of what it is for.
func TestLiveSaysWhatMemoryIsFor(t *testing.T) {
	args := tinyLive(t, "--live=reference", "--set", "system.kv_gib=20")
	t.Chdir(t.TempDir())
	status, _, errs := runHere(t.Context(), pretend, args...)
	for _, want := range []string{"device memory:", "lower system.kv_gib", "KV slots", "20.00 GiB",
		"KV pool at the most"} {
		if status != 1 || !strings.Contains(errs, want) {
			t.Errorf("status %d, lacks %q: %s", status, want, errs)
		}
	}
	if _, err := os.Stat("out/default"); err == nil {
		t.Error("a result folder was left")
	}
}

// An interrupt within a run keeps the requests that finished, and marks the summary.
func TestInterruptWithinARun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	simulate := run.NewSimulator().Run
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		finished, left := sink.Finished, 3
		sink.Finished = func() {
			finished()
			if left--; left == 0 {
				cancel()
			}
		}
		return simulate(ctx, p, sink)
	}
	t.Chdir(t.TempDir())
	status, out, errs := runHere(ctx, runner, "simulate", "--workers", "1", "--set",
		"system.preset=vllm", "--set", "workload.rate=0.1", "--set", "workload.requests=20",
		"--out", "out/default")
	if want := "sparseserve: interrupted; 0 of 1 runs finished, 1 in part, and are kept in " +
		"out/default\n"; status != 130 || filepath.ToSlash(errs) != want {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	if !strings.Contains(out, "ended early: interrupted") {
		t.Errorf("the report does not say so:\n%s", out)
	}
	text, err := os.ReadFile("out/default/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	sum := only(t, string(text))
	rows := runFile(t, "out/default", "vllm-0.1-s1", run.RequestsCSV)
	if n := strings.Count(rows, "\n") - 1; sum.Interrupted != "interrupted" ||
		sum.SLOMet != nil || sum.Completed < 3 || sum.Completed == 20 || n != sum.Completed {
		t.Errorf("%d rows, %+v", n, sum)
	}
}
