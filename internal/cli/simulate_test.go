package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

func TestSimulate(t *testing.T) {
	for name, args := range map[string][]string{
		"default": nil,
		"one-system": {"--set", "system.preset=sparseserve", "--set", "workload.rate=0.1",
			"--out", "here"},
		"seeds": {"ablation", "--set", "seed=[1,2]", "--set", "workload.rate=[0.1,0.2]"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errs := invoke(t, pretend, append([]string{"simulate"}, args...)...)
			if status != 0 {
				t.Errorf("status %d", status)
			}
			if errs != "" {
				t.Errorf("stderr of a pipe is %q, want nothing", errs)
			}
			testkit.Golden(t, "simulate-"+name+".txt", filepath.ToSlash(out))
			_, folder, _ := strings.Cut(out, "Files in ")
			folder, listed, _ := strings.Cut(folder, ": ")
			listed, _, _ = strings.Cut(listed, "\n")
			for name := range strings.SplitSeq(listed, ", ") {
				if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
					t.Errorf("names a file that is not there: %v", err)
				}
			}
		})
	}
}

func TestSimulateJSON(t *testing.T) {
	status, out, errs := invoke(t, pretend, "simulate", "--json", "--set", "workload.rate=0.1")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	d := json.NewDecoder(strings.NewReader(out))
	var runs []map[string]any
	if err := d.Decode(&runs); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Error("something follows the array")
	}
	if len(runs) != 4 {
		t.Fatalf("%d objects, want one a run", len(runs))
	}
	for _, key := range []string{"name", "system", "model", "gpu", "seed", "rate", "requests",
		"completed", "rejected",
		"simulated_s", "steps", "ttft_s", "tbt_s", "queue_delay_s", "throughput_tok_s", "batch_mean",
		"blocks_loaded_per_step", "hit_ratio", "h2d_bytes", "d2h_bytes", "warnings"} {
		if _, ok := runs[0][key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
}

func TestReplayedTraceHasFigures(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,100,10\n")
	status, out, errs := runHere(t.Context(), pretend, "simulate", "--set", "workload.trace=t.csv",
		"--set", "workload.arrivals=trace")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	if !strings.Contains(out, "ttft.png") || !strings.Contains(out, "trace │ vllm") {
		t.Errorf("want a table and figures of the trace:\n%s", out)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		if p.Workload.Rate == 0.15 {
			cancel()
			return metrics.Summary{}, ctx.Err()
		}
		return pretend(ctx, p, sink)
	}
	t.Chdir(t.TempDir())
	status, out, errs := runHere(ctx, runner, "simulate", "--workers", "1", "--set",
		"system.preset=sparseserve")
	if status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if want := "sparseserve: interrupted; 2 of 5 runs finished and are kept in " +
		"out/default-preset=sparseserve\n"; filepath.ToSlash(errs) != want {
		t.Errorf("stderr %q, want %q", errs, want)
	}
	if !strings.Contains(out, "0.25 │ sparseserve") ||
		!strings.HasSuffix(out,
			"Pictures: sparseserve report out/default-preset=sparseserve --format png\n") {
		t.Errorf("the table lacks what finished, or how to draw it:\n%s", out)
	}
	if drawn, _ := filepath.Glob("out/*/*.png"); drawn != nil { // it takes seconds on a busy machine
		t.Errorf("pictures are drawn: %v", drawn)
	}
	if left := finishedRuns(t, "out/default-preset=sparseserve/runs"); left != 2 {
		t.Errorf("%d runs kept", left)
	}
}

func TestInterruptBeforeAnything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Chdir(t.TempDir())
	status, _, errs := runHere(ctx, pretend, "simulate")
	if status != 130 || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	if _, err := os.Stat("out/default"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a result folder was left: %v", err)
	}
}

// With a model and a card alone rates are chosen, said and kept: the same command again, and the
// folder's own configuration, run nothing.
func TestSimulateChoosesRates(t *testing.T) {
	t.Chdir(t.TempDir())
	ran := 0
	counted := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		if sink.Requests != nil {
			ran++
		}
		return pretend(ctx, p, sink)
	}
	const folder = "out/model=llama3.1-8b-gpu=h100-80gb-preset=vllm,sparseserve"
	args := []string{"simulate", "--set", "model=llama3.1-8b", "--set", "gpu=h100-80gb", "--set",
		"system.preset=vllm,sparseserve"}
	status, out, errs := runHere(t.Context(), counted, args...)
	if status != 0 || errs != "" || ran != 10 {
		t.Fatalf("status %d, %d runs: %s", status, ran, errs)
	}
	for _, want := range []string{
		"llama3.1-8b on 1x h100-80gb (kernels imported for this card), engine vllm-0.19: longbench, " +
			"2000 requests",
		"No rate is set. 0.8, 1.7, 2.6, 3.5, 4.4: chosen", "(vllm 4, sparseserve 4 requests/s)",
		"Files in " + folder + ": "} {
		if !strings.Contains(filepath.ToSlash(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "No FILE given") {
		t.Errorf("says that the default experiment runs:\n%s", out)
	}
	for _, again := range [][]string{args, {"simulate", folder + "/config.toml", "--out", folder}} {
		ran = 0
		if status, _, errs := runHere(t.Context(), counted, again...); status != 0 || ran != 0 {
			t.Errorf("%v: status %d, %d runs: %s", again, status, ran, errs)
		}
	}
}

// A sweep chooses rates as simulate does, and prints the same line if it has one variant.
func TestSweepChoosesRates(t *testing.T) {
	t.Chdir(t.TempDir())
	own := "model = \"llama3.1-8b\"\ngpu = \"h100-80gb\"\n[workload]\nprompt_lengths = " +
		"\"fixed(140000)\"\noutput_lengths = \"fixed(9)\"\n[system]\n" +
		"preset = [\"vllm\", \"sparseserve\"]\n"
	writeFile(t, "one.toml", own)
	writeFile(t, "two.toml", own+"[[axis]]\ngrid.system.max_requests = [8, 16]\n")
	head := func(command, file string) string {
		status, out, errs := runHere(t.Context(), pretend, command, file)
		if status != 0 || errs != "" {
			t.Fatalf("status %d: %s", status, errs)
		}
		lines := strings.SplitAfterN(out, "\n", 3)
		return lines[0] + lines[1]
	}
	want := "llama3.1-8b on 1x h100-80gb (kernels imported for this card), engine vllm-0.19: " +
		"prompts fixed(140000), outputs fixed(9), 2000 requests, poisson arrivals; budget 2048 " +
		"tokens; prefix cache of vllm; seed 1: 10 runs; " +
		"100 % of prompts refused: longer than the context of 131072 tokens.\n" +
		"No rate is set. 0.8, 1.7, 2.6, 3.5, 4.4: chosen from what the systems sustain in short " +
		"runs (vllm 4, sparseserve 4 requests/s); --set workload.rate=LIST names others.\n"
	for _, command := range []string{"simulate"} {
		if got := head(command, "one.toml"); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	if got := head("simulate", "two.toml"); got != strings.Replace(want, "10 runs", "20 runs", 1) {
		t.Error(got)
	}
}

// Systems of different engines are the first warning, and are judged by one service level.
func TestDifferentEnginesAreSaid(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "my.toml", "model = \"llama3.1-8b\"\ngpu = \"h100-80gb\"\n[workload]\nrate = 1\n"+
		"requests = 2\n[[systems]]\nname = \"a\"\nengine = \"vllm-0.5\"\n[[systems]]\nname = \"b\"\n"+
		"engine = \"vllm-0.15\"\n")
	status, out, errs := runHere(t.Context(), run.NewSimulator().Run, "simulate", "my.toml")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	for _, want := range []string{"engines vllm-0.5 (a), vllm-0.15 (b): longbench",
		"\nWarnings:\n  different engines: vllm-0.5 (a), vllm-0.15 (b); ",
		"\nSLO: P99 TBT <= 0.1879 s, "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestSimulateKeepsOtherResults: results of other settings, and of an edited file, get folders of
// their own; the same command again makes nothing.
// A file is known by its name, wherever it is.
func TestSettingsName(t *testing.T) {
	got := settingsName([]string{"workload.trace=/data/long/log.csv", "workload.rate=[1, 2]"})
	if got != "-trace=log.csv-rate=1,2" {
		t.Error(got)
	}
}

func TestSimulateKeepsOtherResults(t *testing.T) {
	t.Chdir(t.TempDir())
	ran := 0
	counted := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		ran++
		return pretend(ctx, p, sink)
	}
	one := "model = \"llama3-8b\"\n[system]\npreset = \"vllm\"\n[workload]\nrequests = 3\nrate = 0.1\n"
	edited := strings.Replace(one, "0.1", "0.4", 1)
	for _, step := range []struct {
		file string
		args []string
		out  string
		runs int
	}{
		{one, nil, "out/my", 1},
		{one, nil, "out/my", 0},
		{one, []string{"--set", "workload.rate=0.3"}, "out/my-rate=0.3", 1},
		{edited, nil, "out/my-2", 1},
		{one, nil, "out/my", 0},
		{one, []string{"--force"}, "out/my", 1},
		{edited, []string{"--force"}, "out/my", 1},
		{edited, nil, "out/my", 0},
		{one, []string{"--set", "system.preset=[vllm,vllm-s]", "--set", "output.steps=true"},
			"out/my-preset=vllm,vllm-s-steps=true", 2},
	} {
		writeFile(t, "my.toml", step.file)
		ran = 0
		args := append([]string{"simulate", "my.toml", "--workers", "1"}, step.args...)
		status, out, errs := runHere(t.Context(), counted, args...)
		if status != 0 || ran != step.runs || !strings.Contains(filepath.ToSlash(out), "Files in "+
			step.out+": ") {
			t.Errorf("%v: status %d, %d runs; want %d in %s\n%s%s", step.args, status, ran, step.runs,
				step.out, out, errs)
		}
	}
	status, _, errs := runHere(t.Context(), pretend, "simulate", "my.toml", "--out", "out/my-rate=0.3")
	if want := "holds results of another configuration (vllm-0.3-s1 of other settings or inputs): " +
		"choose another folder, or give --force to replace them"; status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %q", status, errs)
	}
}
