package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// measuredRun is a small part of a published run of vLLM.
var measuredRun, _ = filepath.Abs("../../traces/testdata/measured/llama2-7b_h100_codegen.csv.gz")

// steadyServer answers every request after 30 ms, with 10 ms a token.
func steadyServer(_ context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
	stream, err := traces.Open(p.Workload, p.Seed)
	if err != nil {
		return metrics.Summary{}, err
	}
	fmt.Fprintln(sink.Requests,
		"id,set,prompt_tokens,output_tokens,arrival_s,scheduled_s,first_token_s,last_token_s,"+
			"preemptions,rejected")
	for id := 1; ; id++ {
		a, ok, err := stream.Next()
		if !ok || err != nil {
			return metrics.Summary{Completed: id - 1, Warnings: []warn.Warning{{Kind: warn.Assumed,
					Text: "linears: more tokens than measured"}}},
				err
		}
		at, first := a.At.Seconds(), a.At.Seconds()+0.03
		if a.Prompt == 7 {
			fmt.Fprintf(sink.Requests, "%d,,%d,%d,%.9f,,,,,\"too long\"\n", id, a.Prompt, a.Output, at)
			continue
		}
		fmt.Fprintf(sink.Requests, "%d,,%d,%d,%.9f,%.9f,%.9f,%.9f,0,\n", id, a.Prompt, a.Output, at, at,
			first, first+0.01*float64(a.Output-1))
		sink.Finished()
	}
}

func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	text, err := os.ReadFile(measuredRun)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "run.csv.gz", string(text))
	writeFile(t, "short.csv",
		"arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n"+
			"0,5,3,9,10\n1,5,3,0.1,0.12\n2,7,3,0.1,0.12\n3,9,0,,\n4,9,1,0.02,0.02\n")
	writeFile(t, "server.toml", "model = \"llama2-7b\"\ngpu = \"h100-80gb\"\n[system]\npreset = "+
		"\"vllm\"\nscheduler = \"vllm-v1\"\nmax_requests = 128\n")
	for name, args := range map[string][]string{
		"stages": {"run.csv.gz", "server.toml"},
		"short": {"short.csv", "--skip", "0.5", "--out", "here", "--set", "model=llama2-7b", "--set",
			"gpu=h100-80gb"},
	} {
		status, out, errs := runHere(t.Context(), steadyServer, append([]string{"compare"}, args...)...)
		if status != 0 || errs != "" {
			t.Errorf("%s: status %d, stderr %q", name, status, errs)
		}
		testkit.Golden(t, "compare-"+name+".txt", filepath.ToSlash(out))
		_, files, _ := strings.Cut(out, "Files in ")
		folder, files, _ := strings.Cut(strings.TrimSpace(files), ": ")
		for path := range strings.SplitSeq(files, ", ") {
			if info, err := os.Stat(filepath.Join(folder, path)); err != nil || info.Size() == 0 {
				t.Errorf("%s: names a file that is not there: %v", name, err)
			}
		}
	}
}

// figures draws a comparison's folder anew.
func TestCompareFigures(t *testing.T) {
	status, _, errs := invoke(t, steadyServer, "compare", measuredRun, "--set", "model=llama2-7b",
		"--set", "gpu=h100-80gb", "--out", "a")
	if status != 0 {
		t.Fatal(errs)
	}
	status, out, errs := runHere(t.Context(), nil, "report", "a", "--format", "png", "--out", "b")
	if want := "b/distributions.png\nb/pictures.csv\n"; status != 0 || filepath.ToSlash(out) != want {
		t.Errorf("status %d, stderr %q, stdout %q", status, errs, out)
	}
	for _, name := range []string{"distributions.png"} {
		first, err1 := os.ReadFile("a/" + name)
		again, err2 := os.ReadFile("b/" + name)
		if !bytes.Equal(first, again) || err1 != nil || err2 != nil {
			t.Errorf("%s drawn anew differs (%v, %v)", name, err1, err2)
		}
	}
}

// TestCompareJSON runs the simulator: the figures equal the result folder's, and a second run gives
// the same.
func TestCompareJSON(t *testing.T) {
	args := []string{"compare", measuredRun, "--json", "--set", "model=llama2-7b", "--set",
		"gpu=h100-80gb"}
	status, out, errs := invoke(t, run.NewSimulator().Run, args...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	var all []struct {
		Run, Stage, Metric  string
		Measured, Simulated float64
		Error               *float64
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	stages := map[string][]string{}
	for _, c := range all {
		stages[c.Stage] = append(stages[c.Stage], c.Metric)
		if c.Run != "llama2-7b_h100_codegen" || c.Measured <= 0 || c.Simulated <= 0 || c.Error == nil ||
			math.Abs(*c.Error-(c.Simulated/c.Measured-1)) > 1e-12 {
			t.Errorf("%+v", c)
		}
	}
	for _, stage := range []string{"all", "4.5 req/s, 0-40 s", "9.2 req/s, 44-65 s"} {
		if m := stages[stage]; len(m) != 13 || m[0] != "ttft_mean_s" ||
			!slices.Contains(m, "e2e_p99_s") || m[12] != "throughput_tok_s" {
			t.Errorf("%s: %q", stage, m)
		}
	}
	kept, err := os.ReadFile(
		"out/compare/llama2-7b_h100_codegen-model=llama2-7b-gpu=h100-80gb/compare.json")
	if err != nil || string(kept) != out {
		t.Errorf("--json prints other text than compare.json has; %v", err)
	}
	if _, again, _ := runHere(t.Context(), run.NewSimulator().Run, args...); again != out {
		t.Error("the same command prints other figures")
	}
}

func TestCompareInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Chdir(t.TempDir())
	status, _, errs := runHere(ctx, run.NewSimulator().Run, "compare", measuredRun, "--set",
		"model=llama2-7b", "--set", "gpu=h100-80gb")
	if left, _ := os.ReadDir("out/compare"); status != 130 || errs != "sparseserve: interrupted\n" ||
		len(left) > 0 {
		t.Errorf("status %d, stderr %q, left %v", status, errs, left)
	}
}

func TestRecordName(t *testing.T) {
	for path, want := range map[string]string{
		"a/run.csv.gz": "run", "vllm-5.0qps.json": "vllm-5.0qps", ".json": ".json", "x.gz": "x",
		"plain": "plain",
	} {
		if got := recordName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
