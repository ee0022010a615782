package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// pretend is a runner with fixed results: vLLM drowns from 0.15 requests/s.
func pretend(_ context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
	rate, seed := p.Workload.Rate, float64(p.Seed)
	sum := metrics.Summary{
		Requests: max(1, p.Workload.Requests), Completed: max(1, p.Workload.Requests), ServedShare: 1,
		SimulatedS: 3000, Steps: 60000, TTFT: metrics.Stats{Mean: 1.5 + 10*rate + seed/10, P50: 1, P90: 4,
			P99: 9.25},
		TBT:            metrics.Stats{Mean: 0.03 + rate/10, P50: 0.03, P90: 0.05, P99: 0.31},
		QueueDelay:     metrics.Stats{Mean: rate, P50: 0, P90: 1, P99: 4},
		ThroughputTokS: 197 * rate, BatchMean: 1 + 20*rate, SLOMet: new(true),
		PhaseS: map[string]float64{"linears": 1000},
	}
	if p.System.Sparse() {
		sum.TTFT.Mean *= 1 - rate
	}
	if p.System.Offload.On {
		sum.BlocksLoadedPerStep, sum.HitRatio = 12345*rate, 0.987
		sum.Warnings = append(sum.Warnings, warn.New(warn.HeadsSampled,
			"heads sampled: 32 of 1024 groups; blocks "+
				"loaded have a standard error of %g %%", 10*rate))
	}
	if p.System.Name == "vllm" && rate >= 0.15 {
		sum.TTFT.Mean, sum.TTFT.P99, sum.QueueDelay.Mean, sum.SLOMet = 260, 512, 250, new(false)
		sum.ThroughputTokS = 28.1
		sum.Warnings = append(sum.Warnings, warn.New(warn.UnstableQueue,
			"unstable queue: delay grows %gx", 100*rate))
	}
	sum.Warnings = append(sum.Warnings, warn.New(warn.Assumed, "linears: more tokens than measured"))
	for i := range p.Workload.Requests {
		sink.Finished()
		if sink.Watch != nil { // answers one at a time, within a quarter of a second
			at := float64(i+1) / min(rate, 4)
			sink.Watch.Ended(&metrics.Request{LastToken: des.Time(at * float64(des.Second))})
		}
	}
	if sink.Requests != nil {
		fmt.Fprintln(sink.Requests, "id")
	}
	return sum, nil
}

// invoke carries out a command line in an empty folder.
func invoke(t *testing.T, runner run.Runner, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	return runHere(t.Context(), runner, args...)
}

func runHere(ctx context.Context, runner run.Runner, args ...string) (status int, stdout,
	stderr string) {
	var out, errs bytes.Buffer
	app := App{Stdout: &out, Stderr: &errs, Run: runner, Version: "test"}
	status = app.Main(ctx, args)
	return status, out.String(), errs.String()
}

// The help of every command, argument and flag fits the terminal's width.
func TestHelp(t *testing.T) {
	app := (&App{}).parser(t.Context(), nil).Model
	err := kong.Visit(app, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Node:
			words := strings.Fields(v.Path())
			status, out, errs := invoke(t, nil, append(words, "--help")...)
			if status != exitOK || errs != "" || v.Help == "" && v.Parent != nil ||
				!strings.HasPrefix(out, "Usage: sparseserve") {
				t.Errorf("%q: status %d, stderr %q, stdout %q", words, status, errs, out)
			}
			for _, f := range v.Positional {
				if f.Help == "" || !strings.Contains(out, "<"+f.Name+">") {
					t.Errorf("%q: no description of %s", words, f.Name)
				}
			}
			if _, word, _ := invoke(t, nil, append([]string{"help"}, words...)...); word != out {
				t.Errorf("help %q: %q, want %q", words, word, out)
			}
		case *kong.Flag:
			if v.Help == "" && !v.Hidden {
				t.Errorf("--%s has no description", v.Name)
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Error(err)
	}
	if _, bare, _ := invoke(t, nil); !strings.HasPrefix(bare, "Usage:") {
		t.Errorf("without arguments: %q, want the help", bare)
	}
}

// Every kind of list prints a table. What is in it is held by tests of package answers.
func TestList(t *testing.T) {
	for _, what := range []string{"gpus", "engines", "models", "systems", "selections", "evictions",
		"prefills", "prefills minference", "routers", "prices", "traces", "experiments",
		"gpus h100-80gb", "models llama3-8b", "engines vllm-0.15", "engines sparseserve-live"} {
		status, out, errs := invoke(t, nil, append([]string{"list"}, strings.Fields(what)...)...)
		if status != 0 || errs != "" || strings.Count(out, "\n") < 6 || !strings.Contains(out, "╰─") {
			t.Errorf("%s: status %d, stderr %q, stdout\n%s", what, status, errs, out)
		}
	}
	_, out, _ := invoke(t, nil, "list", "keys", "workload.r", "--json")
	var keys []configKey
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) < 2 ||
		keys[0].Key != "workload.rate" && keys[1].Key != "workload.rate" || keys[0].Meaning == "" {
		t.Errorf("%v, %s", err, out)
	}
	if _, out, _ := invoke(t, nil, "list", "keys", "slo"); !strings.Contains(out, "slo.ttft_s = ") {
		t.Error(out)
	}
}

// TestErrors: one line on stderr, nothing on stdout, status 1, no file left.
func TestErrors(t *testing.T) {
	boom := func(context.Context, config.Point, run.Sink) (metrics.Summary, error) {
		return metrics.Summary{}, errors.New("t.csv:3: half a line")
	}
	cases := []struct {
		args []string
		run  run.Runner
	}{
		{[]string{"simulat"}, pretend},
		{[]string{"sweep", "FILE", "--out", "out"}, pretend},
		{[]string{"claims"}, pretend},
		{[]string{"simulate", "--sets", "a=b"}, pretend},
		{[]string{"simulate", ""}, pretend},
		{[]string{"simulate", "nowhere.toml"}, pretend},
		{[]string{"simulate", "--workers", "-1"}, pretend},
		{[]string{"simulate", "--workers", "x"}, pretend},
		{[]string{"simulate", "--json", "--workers", "1"}, boom},

		{[]string{"simulate", "default", "--tasks", "2"}, pretend},
		{[]string{"simulate", "default", "--points", "out", "--tasks", "2", "--task", "3"}, pretend},
		{[]string{"simulate", strings.Repeat("long", 75) + ".toml"}, pretend},
		{[]string{"plan", "nowhere.toml"}, pretend},
		{[]string{"plan"}, pretend},
		{[]string{"plan", "default"}, pretend},
		{[]string{"goodput", "--set", "plan.prices=mid"}, pretend},
		{[]string{"goodput", "--set", "goodput.width=0"}, pretend},
		{[]string{"goodput", "--workers", "1"}, boom},
		{[]string{"whatif", "nowhere.toml"}, pretend},
		{[]string{"whatif", "--vary", "link=1", "--workers", "1"}, boom},
		{[]string{"compare", ".", "nowhere"}, pretend},
		{[]string{"compare", "."}, pretend},
		{[]string{"compare", ".", ".", "--skip", "1"}, pretend},
		{[]string{"compare"}, pretend},
		{[]string{"compare", "nowhere.json"}, pretend},
		{[]string{"compare", measuredRun}, pretend},
		{[]string{"compare", measuredRun, "--set", "model=llama2-7b"}, pretend},
		{[]string{"compare", measuredRun, "default"}, pretend},
		{[]string{"compare", measuredRun, "--set", "model=llama2-7b", "--set", "gpu=h100-80gb", "--set",
			"workload.rate=1"}, pretend},
		{[]string{"compare", measuredRun, "--set", "model=llama2-7b", "--set", "gpu=h100-80gb", "--set",
			"system.preset=[vllm,vllm-s]"}, pretend},
		{[]string{"compare", measuredRun, "--set", "model=llama2-7b", "--set", "gpu=h100-80gb", "--skip",
			"70"}, pretend},
		{[]string{"compare", measuredRun, "--set", "model=llama2-7b", "--set", "gpu=h100-80gb"}, boom},
		{[]string{"compare", measuredRun, "--skip=-1"}, pretend},
		{[]string{"list", "gpu"}, pretend},
		{[]string{"list", "keys", "sytem"}, pretend},
		{[]string{"report", "nowhere", "--format", "png"}, pretend},
		{[]string{"report", ".", "."}, pretend},
		{[]string{"paper", "figures", "zzz"}, pretend},
		{[]string{"list", "patterns", "/dev/zero"}, pretend},
		{[]string{"trace", "describe", "nowhere.csv"}, pretend},
		{[]string{"trace", "describe", "nowhere.toml"}, pretend},
		{[]string{"trace", "describe", "--format", "csv", "nowhere.toml"}, pretend},
		{[]string{"trace", "convert", "nowhere.csv"}, pretend},
	}
	var all strings.Builder
	for _, c := range cases {
		line := strings.Join(c.args, " ")
		status, out, errs := invoke(t, c.run, c.args...)
		if status != 1 || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: status %d, stdout %q, stderr %q", line, status, out, errs)
		}
		if left, _ := os.ReadDir("."); len(left) > 1 || len(left) == 1 && left[0].Name() != "out" {
			t.Errorf("%s: left %v", line, left)
		}
		all.WriteString(strings.ReplaceAll(line+"\n    "+errs,
			filepath.Dir(measuredRun)+string(filepath.Separator), ""))
	}
	testkit.Golden(t, "errors.txt", all.String())
}

// Pictures that report draws of a result folder equal its run's.
func TestPicturesCommand(t *testing.T) {
	status, before, errs := invoke(t, pretend, "simulate")
	if status != 0 {
		t.Fatalf("status %d: %s\n%s", status, errs, before)
	}
	status, out, errs := runHere(t.Context(), nil, "report", "out/default", "--format", "png", "--out",
		"pictures")
	want := "pictures/ttft.png\npictures/throughput.png\npictures/tbt.png\npictures/time.png\n" +
		"pictures/pictures.csv\n"
	if status != 0 || filepath.ToSlash(out) != want {
		t.Errorf("status %d, stderr %q, stdout %q", status, errs, out)
	}
	for _, name := range []string{"ttft.png", "pictures.csv", "time.png"} {
		a, err1 := os.ReadFile("out/default/" + name)
		b, err2 := os.ReadFile("pictures/" + name)
		if !bytes.Equal(a, b) || err1 != nil || err2 != nil {
			t.Errorf("%s drawn anew differs (%v, %v)", name, err1, err2)
		}
	}
}

func TestTraceCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"+
		"2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n2023-11-16 "+
		"18:15:51.2224670,879,55\n")
	status, out, errs := runHere(t.Context(), nil, "trace", "describe", "t.csv")
	if status != 0 || errs != "" {
		t.Errorf("describe: status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "describe.txt", out)
	status, out, errs = runHere(t.Context(), nil, "trace", "convert", "t.csv", "--out", "own.csv")
	if status != 0 || errs != "" || out != "own.csv: 3 requests\n" {
		t.Errorf("convert: status %d, stdout %q, stderr %q", status, out, errs)
	}
	status, again, errs := runHere(t.Context(), nil, "trace", "describe", "--json", "own.csv")
	var d struct {
		Requests int
		Seconds  float64
	}
	if err := json.Unmarshal([]byte(again), &d); err != nil || status != 0 || d.Requests != 3 ||
		d.Seconds < 4.5 || d.Seconds > 4.6 {
		t.Errorf("converted is described as %q (status %d, stderr %q, %v)", again, status, errs, err)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHelpExamples: the whole small files of help are what they say.
func TestHelpExamples(t *testing.T) {
	if s, err := config.LoadSweep(t.Context(), "help/simulate.toml", nil); err != nil ||
		len(s.Variants) != 8 {
		t.Errorf("simulate: %d variants, want 8: %v", len(s.Variants), err)
	}
	w, err := config.LoadVaried("help/whatif.toml", nil, [][]config.Setting{nil}, true)
	if err != nil || len(w.Variants) != 1 {
		t.Errorf("whatif: %v", err)
	}
	for _, name := range []string{"plan", "goodput"} {
		p, err := config.LoadPlan(t.Context(), "help/"+name+".toml", nil)
		if err != nil || len(p.Variants) != 2 || (p.Plan != nil) != (name == "plan") {
			t.Errorf("%s: %d variants, want 2: %v", name, len(p.Variants), err)
		}
	}
}
