package run

import (
	"strings"
	"testing"
)

// Where nothing has to leave, tiers that know the future hit what all others do; under pressure
// the run of a trace ends, its laws held.
func TestBeladyServesTraces(t *testing.T) {
	for _, cache := range []string{"vllm", "radix"} {
		servesTraces(t, cache)
	}
}

func servesTraces(t *testing.T, cache string) {
	hits := map[string]int64{}
	for _, eviction := range []string{"lru", "belady"} {
		for _, dram := range []string{"1", "200"} {
			c := mustLoad(t, "", "workload.trace=../../traces/testdata/mooncake.jsonl",
				"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm-0.15", "system.kv_gib=17",
				"prefix_cache.mode="+cache, "prefix_cache.dram_gib="+dram,
				"prefix_cache.eviction="+eviction, "prefix_cache.write=back")
			sum, err := NewSimulator().Run(t.Context(), c[0], Sink{})
			if err != nil {
				t.Fatal(err)
			}
			hits[eviction+dram] = sum.PrefixCache.HitTokens
		}
	}
	if hits["lru200"] != hits["belady200"] || hits["lru200"] == 0 {
		t.Errorf("%s, %v: tokens hit in ample memory differ, or there are none", cache, hits)
	}
}

// Requests whose order is not known ahead are refused, by the key and why.
func TestBeladyNeedsTheFuture(t *testing.T) {
	for why, sets := range map[string][]string{
		"when another ends": {"workload.trace=sessions", "workload.requests=8",
			"workload.rate=1"},
		"another ends": {"workload.trace=../../traces/testdata/mooncake.jsonl",
			"workload.arrivals=closed", "workload.concurrency=2"},
		"router": {"workload.trace=../../traces/testdata/mooncake.jsonl", "fleet.replicas=2"},
	} {
		c := mustLoad(t, "", append(sets, "model=llama3.1-8b", "gpu=h100-80gb",
			"system.preset=vllm-0.15", "prefix_cache.mode=vllm", "prefix_cache.dram_gib=10",
			"prefix_cache.eviction=belady")...)
		_, err := NewSimulator().Run(t.Context(), c[0], Sink{})
		if err == nil || !strings.Contains(err.Error(), why) ||
			!strings.Contains(err.Error(), "prefix_cache.eviction") {
			t.Errorf("%v: %v", sets, err)
		}
	}
}
