package capacity

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/hw"
)

// TestPurchaseRepeats gives the same files whatever the number of workers, and describes the
// choice by a configuration that makes its run.
func TestPurchaseRepeats(t *testing.T) {
	dir := t.TempDir()
	text := fmt.Sprintf(short, "rate = 25", "ttft_s = 0.5")
	simulate := run.NewSimulator().Run
	var trees []map[string]string
	for _, workers := range []int{1, 4} {
		at := filepath.Join(dir, fmt.Sprint(workers))
		a, _ := purchase(t, at, text, workers, simulate)
		out := filepath.Join(at, "out")
		answer, err := a.Files()
		if err := written(out, answer, err); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, testkit.Tree(t, out))
		p, err := config.LoadPoint(filepath.Join(out, ChoiceFile))
		if err != nil {
			t.Fatal(err)
		}
		slo, err := limitsOf(&p)
		if err != nil {
			t.Fatal(err)
		}
		if holds, _, _ := served(t, &p, slo, simulate); p.Fleet.Replicas != a.Choice.Replicas || !holds {
			t.Errorf("%s: %d replicas do not serve the load", ChoiceFile, p.Fleet.Replicas)
		}
	}
	testkit.SameTree(t, trees[0], trees[1])
	var read struct{ Candidates []map[string]any }
	if err := json.Unmarshal([]byte(trees[0][PurchaseFile]), &read); err != nil ||
		len(read.Candidates) != 8 {
		t.Errorf("%s has %d candidates: %v", PurchaseFile, len(read.Candidates), err)
	}
}

// TestNothingToBuy names the nearest miss and what it misses, and has no choice.
func TestNothingToBuy(t *testing.T) {
	a, _ := purchase(t, t.TempDir(), fmt.Sprintf(short, "rate = 5", "tbt_s = 0.001\nttft_s = 30"), 2,
		run.NewSimulator().Run)
	files, err := a.Files()
	if err != nil || slices.ContainsFunc(files,
		func(f run.File) bool { return f.Name == ChoiceFile }) {
		t.Errorf("%d files, one of them %s: %v", len(files), ChoiceFile, err)
	}
	near := a.Nearest
	if a.Choice != nil || near == nil || near.Name != "vllm-0.15 gpu=h200 tensor_parallel=2" {
		t.Fatalf("choice %+v, nearest %+v", a.Choice, near)
	}
	if near.Limits[0].Name != "tbt" || near.Limits[0].Of < 2 || near.Limits[1].Of > 1 {
		t.Errorf("limits %+v", near.Limits)
	}
	for _, c := range a.Candidates {
		if c.Outcome != Misses || !strings.HasPrefix(c.Reason, "tbt is ") {
			t.Errorf("%s: %s, %q", c.Name, c.Outcome, c.Reason)
		}
	}
}

// TestTooLargeIsNoError: of a grid, GPUs that a model does not fit are candidates that are out.
func TestTooLargeIsNoError(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(short, "rate = 2", "ttft_s = 5"), "llama3.1-8b",
		"codellama-34b", 1)
	a, _ := purchase(t, t.TempDir(), text, 2, queues)
	var large []string
	for _, c := range a.Candidates {
		if c.Outcome == TooLarge {
			large = append(large, c.Name)
			if !strings.Contains(c.Reason, "nothing is left for KV") {
				t.Errorf("%s: %s", c.Name, c.Reason)
			}
		}
	}
	if want := []string{"vllm-0.15 gpu=a100-40gb tensor_parallel=1"}; a.Choice == nil ||
		!slices.Equal(large, want) {
		t.Errorf("choice %+v, too large %q, want %q", a.Choice, large, want)
	}
}

func TestPurchaseRefuses(t *testing.T) {
	base := fmt.Sprintf(short, "rate = 2", "ttft_s = 5")
	prices := filepath.Join(t.TempDir(), "prices.toml")
	text := []byte(
		"[[price]]\nprovider = \"us\"\ngpu = \"h200\"\nusd_per_hour = 3\ndate = 2026-11-01\nsource = " +
			"\"ours\"\n",
	)
	if err := os.WriteFile(prices, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"prompt_lengths = \"lognormal(700, 1, 6000)\"\noutput_lengths = \"uniform(20, 120)\"\nrate = " +
			"2\n", "", "workload.rate: not set; [plan] buys for the traffic that is expected"},
		{"rate = 2", "rate = [2, 3]", "plan.toml:5: workload.rate = [2, 3]: a purchase is planned for " +
			"one load; set one value"},
		{"rate = 2", "concurrency = [2, 3]", "workload.concurrency = [2, 3]: a purchase is planned for " +
			"one load"},
		{"[fleet]", "[fleet]\nreplicas = 3", "fleet.replicas = [3]: [plan] looks for the number of " +
			"replicas"},
		{"[fleet]", "[fleet]\nfail = [[1, 0, 1]]", "fleet.fail"},
		{"ttft_s = 5", "ttft_s = 5\ne2e_s = 3",
			"plan.toml:14: slo.ttft_s = 5: contradicts slo.e2e_s = 3"},
		{"ttft_s = 5", "ttft_s = 5\ndelay_s = 6\ndelay_stat = \"p99\"",
			"slo.delay_s = 6: contradicts slo.ttft_s = 5"},
		{"ttft_s = 5", "tbt_factor = 0", "[slo] has no bound"},
		{"max_replicas = 5", "max_replicas = 0", "plan.max_replicas = 0: must be at least 1"},
		{"max_replicas = 5", "cards = 5", "plan.cards: unknown key"},
		{"max_replicas = 5", "prices = \"acme\"",
			`plan.prices = "acme": built-in prices has no such table; use low, mid, high, akash, aws`},
		{"max_replicas = 5", "prices = \"lambda\"",
			`gpu = "h200": plan.prices = "lambda" has no price of it; hyperstack, akash, aws, google of built-in prices`},
		{"max_replicas = 5", fmt.Sprintf("prices_file = %q", prices),
			`gpu = "a100-40gb": ` + prices + ` has no price of it`},
		{"max_replicas = 5", "prices_file = \"none.toml\"", "open none.toml: no such file"},
		{"tensor_parallel = [1, 2]", "tensor_parallel = [1, 3]", "tensor_parallel = 3"},
		{"[[axis]]", "[[axis]]\ngrid.workload.rate = [1, 2]",
			"plan.toml:18: workload.rate: candidates of a [plan] serve one load within one service level"},
		{"[[axis]]", "[[axis]]\ngrid.slo.ttft_s = [1, 2]",
			"plan.toml:18: slo.ttft_s: candidates of a [plan] serve one load"},
	} {
		if !strings.Contains(base, c.from) {
			t.Fatalf("no %q", c.from)
		}
		path := testkit.Write(t, "plan.toml", strings.Replace(base, c.from, c.to, 1))
		s, err := config.LoadPlan(t.Context(), path, nil)
		if err == nil {
			_, err = OffersOf(t.Context(), s)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one with %q", c.to, err, c.want)
		}
	}
}

// Every resource of every card can be a tenth larger.
func TestResourcesGrow(t *testing.T) {
	for _, gpu := range hw.CardNames() {
		for _, preset := range []string{"vllm", "sparseserve"} {
			cfg, err := config.Load("", []string{"gpu=" + gpu, "system.preset=" + preset, "system.kv_gib=2"})
			if err != nil {
				t.Fatal(err)
			}
			grown := 0
			for _, r := range resources {
				p := cfg[0]
				ok, err := r.grow(&p)
				if err != nil {
					t.Fatal(err)
				}
				card, err := hw.LoadCard(gpu)
				if err != nil {
					t.Fatal(err)
				}
				if key, err := card.CheckChanges(p.Card); err != nil {
					t.Errorf("%s, %s: %s: %v", gpu, r.name, key, err)
				}
				if before := cfg[0]; ok == reflect.DeepEqual(before, p) {
					t.Errorf("%s, %s, %s: grown %v", gpu, preset, r.name, ok)
				}
				if ok {
					grown++
				}
			}
			if want := map[string]int{"vllm": len(resources) - 2,
				"sparseserve": len(resources)}[preset]; grown != want {
				t.Errorf("%s, %s: %d resources, want %d", gpu, preset, grown, want)
			}
		}
	}
}
