package run

import (
	"errors"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// halfInDRAM runs four prompts of 4,096 tokens one by one, of which DRAM has the first 2,048 each:
// 256 MiB.
func halfInDRAM(t *testing.T, sets ...string) metrics.Summary {
	t.Helper()
	c := mustLoad(t, "", append([]string{"workload.trace=synthetic", "workload.requests=4",
		"workload.prompt_lengths=fixed(4096)", "workload.output_lengths=fixed(2)",
		"workload.concurrency=1", "workload.prefix_hit=0.5", "model=llama3.1-8b", "gpu=h100-80gb",
		"system.preset=vllm-0.15", "prefix_cache.mode=vllm", "prefix_cache.dram_gib=20"}, sets...)...)
	sum, err := NewSimulator().Run(t.Context(), c[0], Sink{})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Over the H100's link of 51.2 GB/s 256 MiB are there in 5 ms, and are computed in more than 30: at
// 989 TFLOP/s 2,048 tokens of 8 billion weights take 33 ms. Over one of 0.5 GB/s they take 537 ms.
// What is cheaper is as fast as what is faster of the other two.
func TestWhatIsCheaperIsDone(t *testing.T) {
	slow := []string{"card.link_h2d=0.5", "card.link_d2h=0.5"}
	for _, c := range []struct {
		name string
		link []string
		load bool
	}{{"fast", nil, true}, {"slow", slow, false}} {
		ttft, hits := map[string]float64{}, map[string]int64{}
		for _, load := range []string{"load", "recompute", "cheaper"} {
			sum := halfInDRAM(t, append(c.link, "prefix_cache.load="+load)...)
			ttft[load], hits[load] = sum.TTFT.Mean, sum.PrefixCache.DRAM.HitTokens
		}
		faster, hit := "recompute", int64(0)
		if c.load {
			faster, hit = "load", 4*2048
		}
		if hits["load"] != 4*2048 || hits["recompute"] != 0 || hits["cheaper"] != hit ||
			ttft["cheaper"] != min(ttft["load"], ttft["recompute"]) || ttft["cheaper"] != ttft[faster] {
			t.Errorf("%s link: tokens hit %v, TTFT %v", c.name, hits, ttft)
		}
	}
}

// Each layer waits for its part while the one before computes: of 5 ms of a load nearly all are
// saved, where the step waits for all of it without.
func TestLayersHideTheirLoads(t *testing.T) {
	ttft := map[string]float64{}
	for _, overlap := range []string{"layers", "none"} {
		sum := halfInDRAM(t, "prefix_cache.overlap="+overlap)
		if hit := sum.PrefixCache.DRAM.HitTokens; hit != 4*2048 {
			t.Errorf("%s: %d tokens hit", overlap, hit)
		}
		ttft[overlap] = sum.TTFT.Mean
	}
	if saved := 1e3 * (ttft["none"] - ttft["layers"]); saved < 4 || saved > 5.3 {
		t.Errorf("layers save %.3f ms of 5.24: TTFT %v", saved, ttft)
	}
}

// A chunk of 256 tokens of 128 KiB takes 32 MiB, 0.03125 GiB; a tier with less would hold nothing.
// A point that was changed after its configuration was read is refused when it runs.
func TestTiersHoldAChunk(t *testing.T) {
	for key, tier := range map[string]func(*sim.Spec) *float64{
		"prefix_cache.dram_gib": func(s *sim.Spec) *float64 { return &s.PrefixCache.DRAMGiB },
		"prefix_cache.ssd_gib":  func(s *sim.Spec) *float64 { return &s.PrefixCache.SSDGiB },
	} {
		for size, fits := range map[float64]bool{0.03125: true, 0.0312: false} {
			p := mustLoad(t, "", "workload.requests=1", "model=llama3.1-8b", "gpu=h100-80gb",
				"system.preset=vllm-0.15", "prefix_cache.mode=vllm", key+"=1")[0]
			*tier(&p.System) = size
			_, err := NewSimulator().Run(t.Context(), p, Sink{})
			var refused *config.KeyError
			if fits == errors.As(err, &refused) || !fits && (refused.Key != key ||
				refused.Value != config.Show(size)) {
				t.Errorf("%s = %g: %v", key, size, err)
			}
		}
	}
}
