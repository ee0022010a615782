package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// sessionsLive are the arguments of a short live run of sessions.
func sessionsLive(t *testing.T, more ...string) []string {
	args := tinyLive(t, "--live=reference", "--out", "out")
	for _, set := range []string{"workload.trace=sessions", "workload.requests=10",
		"sessions.turns=fixed(3)", "workload.think_s=0.01", "workload.output_scale=1",
		"workload.prompt_lengths=fixed(24)", "workload.output_lengths=fixed(12)",
		"sessions.system_lengths=fixed(64)"} {
		args = append(args, "--set", set)
	}
	return append(args, more...)
}

// A live run of sessions finds what turns before have left.
func TestLiveSessionsHit(t *testing.T) {
	all := sessionsLive(t)
	for _, c := range [][2]string{{"vllm", "vllm"}, {"vllm", "radix"}, {"sparseserve", "vllm"}} {
		args := append(slices.Clone(all), "--set", "system.preset="+c[0], "--set",
			"prefix_cache.mode="+c[1])
		t.Chdir(t.TempDir())
		if status, out, errs := runHere(t.Context(), run.NewSimulator().Run, args...); status != 0 {
			t.Fatalf("status %d, stderr %q\n%s", status, errs, out)
		}
		text, err := os.ReadFile("out/summary.json")
		if err != nil {
			t.Fatal(err)
		}
		s := only(t, string(text))
		if u := s.PrefixCache; u == nil || u.HitTokens < 64 || u.HitTokens >= u.PromptTokens {
			t.Errorf("%v: %+v", c, u)
		}
	}
}

// What a live run does not have is refused by key and value.
func TestLivePrefixesThatAreRefused(t *testing.T) {
	for want, sets := range map[string][]string{
		`prefix_cache.attend = "selected": is simulated`: {"prefix_cache.attend=selected",
			"system.preset=sparseserve", "prefix_cache.mode=vllm"},
		"prefix_cache.dram_gib = 0.25: a live run caches prefixes in HBM": {"prefix_cache.mode=vllm",
			"system.preset=vllm", "prefix_cache.dram_gib=0.25", "prefix_cache.overlap=layers"},
		"workload.prefix_hit = 0.5: a live run finds hits by content": {"workload.prefix_hit=0.5"},
	} {
		args := tinyLive(t, "--live=reference", "--out", "out")
		for _, set := range sets {
			args = append(args, "--set", set)
		}
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		if status != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("status %d, %q; want %q", status, errs, want)
		}
	}
}
