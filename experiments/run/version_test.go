package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// goldenScenarios are short runs that together use every large part of the model.
var goldenScenarios = map[string][]string{
	"dense": {"system.preset=vllm", "workload.requests=12"},
	"dense of the papers' engine": {"system.preset=vllm", "system.engine=vllm-0.5",
		"workload.requests=12"},
	"sparse offload": {"system.preset=sparseserve", "workload.requests=8"},
	"rounds of PSA":  {"system.preset=vllm-psa", "workload.requests=6"},
	"experts and latent attention": {"model=deepseek-v3.2", "gpu=h200", "system.preset=dsa",
		"system.tensor_parallel=8", "workload.requests=8"},
	"hot buffers": {"model=deepseek-v3.2", "gpu=h200", "system.preset=hisparse",
		"system.tensor_parallel=8", "workload.requests=8"},
	"prefix cache": {"system.preset=vllm-0.15", "prefix_cache.mode=vllm",
		"workload.trace=sessions", "workload.requests=24", "workload.think_s=1"},
	"fleet": {"system.preset=vllm", "fleet.replicas=2", "workload.rate=0.4",
		"workload.requests=16"},
	"speculation": {"model=deepseek-v3", "gpu=h200", "system.preset=vllm-0.15",
		"system.tensor_parallel=8", "prefix_cache.mode=off", "speculation.tokens=2",
		"workload.requests=8"},
	"drafts and a prefix cache": {"model=deepseek-v3.2", "gpu=h200", "system.preset=dsa",
		"system.tensor_parallel=8", "prefix_cache.mode=vllm", "speculation.tokens=2",
		"speculation.acceptance=0.8", "workload.trace=sessions", "workload.requests=16",
		"workload.think_s=1"},
	"HiSparse as it is served": {"model=deepseek-v3.2", "gpu=h200", "system.preset=hisparse",
		"system.tensor_parallel=8", "prefix_cache.mode=vllm", "speculation.tokens=3",
		"speculation.acceptance=0.7", "workload.trace=sessions", "workload.requests=24",
		"workload.think_s=1", "sessions.system_lengths=fixed(12000)"},
	"prefixes of hot buffers that are kept": {"model=deepseek-v3.2", "gpu=h200",
		"system.preset=hisparse-hybrid", "system.tensor_parallel=8", "prefix_cache.mode=vllm",
		"workload.trace=sessions", "workload.requests=24", "workload.think_s=1",
		"sessions.system_lengths=fixed(12000)", "system.kv_gib=1", "workload.rate=1"},
	"sparse prefill": {"model=llama3-8b-1m", "system.preset=vllm-minference",
		"workload.requests=4"},
	"radix tree and its tiers": {"system.preset=vllm", "prefix_cache.mode=radix",
		"prefix_cache.dram_gib=3", "prefix_cache.ssd_gib=40", "prefix_cache.overlap=layers",
		"system.kv_gib=2.5", "workload.trace=sessions", "workload.requests=24", "workload.think_s=20"},
	"prefix cache and its tiers": {"system.preset=vllm-0.15", "prefix_cache.mode=vllm",
		"prefix_cache.dram_gib=3", "prefix_cache.ssd_gib=40", "prefix_cache.write=back",
		"prefix_cache.eviction=sieve", "system.kv_gib=2.5", "workload.trace=sessions",
		"workload.requests=24", "workload.think_s=20"},
	"tiers of experts and latents": {"model=deepseek-v3", "gpu=h200", "system.preset=vllm-0.15",
		"system.tensor_parallel=8", "prefix_cache.mode=vllm", "prefix_cache.dram_gib=20",
		"system.kv_gib=0.5", "workload.trace=sessions", "workload.requests=24", "workload.think_s=20",
		"workload.rate=0.5"},
	"layers with windows": {"model=gpt-oss-20b", "gpu=h100-80gb", "system.preset=vllm",
		"prefix_cache.mode=off", "workload.requests=8"},
	"prefixes of layers with windows": {"model=gpt-oss-20b", "gpu=h100-80gb",
		"system.preset=vllm-0.15", "prefix_cache.mode=vllm", "system.kv_gib=0.5",
		"workload.trace=sessions", "workload.requests=24", "workload.think_s=10", "workload.rate=0.5"},
	"tiers of layers with windows": {"model=gpt-oss-20b", "gpu=h100-80gb",
		"system.preset=vllm-0.15", "prefix_cache.mode=vllm", "prefix_cache.dram_gib=4",
		"system.kv_gib=1", "workload.trace=sessions", "workload.requests=24", "workload.think_s=10",
		"workload.rate=0.5"},
	"cheaper of loads and prefills of experts": {"model=deepseek-v3", "gpu=h200",
		"system.preset=vllm-0.15", "system.tensor_parallel=8", "prefix_cache.mode=vllm",
		"prefix_cache.dram_gib=20", "prefix_cache.load=cheaper", "system.kv_gib=0.5",
		"workload.trace=sessions", "workload.requests=24", "workload.think_s=20", "workload.rate=0.5"},
	"prefixes in DRAM": {"system.preset=sparseserve", "prefix_cache.mode=vllm",
		"workload.trace=sessions", "workload.requests=12", "workload.think_s=1"},
	"selected prefixes": {"system.preset=vllm-so-ft-wc", "prefix_cache.mode=vllm",
		"prefix_cache.attend=selected", "offload.eviction=clock", "offload.pool=per-layer",
		"system.kv_gib=6", "workload.trace=sessions", "workload.requests=16", "workload.think_s=1",
		"workload.rate=2"},
	"eviction by score": {"system.preset=vllm-so", "system.kv_gib=8", "offload.eviction=score",
		"workload.requests=6", "workload.rate=1"},
	"all heads": {"system.preset=sparseserve-psa", "simulation.heads=full", "workload.requests=1"},
	"hot buffers, kept": {"model=deepseek-v3.2", "gpu=h200", "system.preset=hisparse-hybrid",
		"system.tensor_parallel=8", "workload.requests=6", "workload.rate=2", "system.kv_gib=1"},
	"preemption": {"system.preset=vllm", "prefix_cache.mode=off", "system.kv_gib=8",
		"workload.rate=2", "workload.requests=10"},
	"layers in chunks": {"system.preset=sparseserve", "prefill.split=layer-chunked",
		"prefill.max_inject=20000", "system.kv_gib=8", "workload.requests=6", "workload.rate=1"},
	"failing fleet": {"system.preset=sparseserve", "fleet.replicas=2", "fleet.fail=[[20,0,30]]",
		"fleet.router=least-working-set", "workload.requests=8"},
}

// goldenResults is the file that holds what a version of the model gives.
type goldenResults struct {
	Version string
	Traces  map[string]string // built-in traces and digests of their text
	Results map[string]goldenResult
}

// goldenResult has every digit of a run's key figures, and a digest of its tables.
type goldenResult struct {
	TTFT, TBT, E2E   metrics.Stats
	Throughput       float64
	Steps, Preempted int64
	Loaded, Hits     float64
	Tables           string
}

// TestModelVersion holds the results of short runs to the last digit, because kept results are used
// again for as long as ModelVersion stays.
func TestModelVersion(t *testing.T) {
	got := goldenResults{ModelVersion, map[string]string{}, map[string]goldenResult{}}
	traceFiles, err := filepath.Glob("../../traces/*.csv.gz")
	if err != nil || len(traceFiles) == 0 {
		t.Fatalf("%d built-in traces: %v", len(traceFiles), err)
	}
	for _, path := range traceFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		got.Traces[filepath.Base(path)] = hex.EncodeToString(sum[:8])
	}
	for name, sets := range goldenScenarios {
		got.Results[name] = goldenRun(t, sets)
	}
	const path = "testdata/model.json"
	var want goldenResults
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &want) != nil {
		t.Logf("%s: %v", path, err)
	}
	var other []string
	for _, name := range slices.Sorted(maps.Keys(want.Results)) {
		if got.Results[name] != want.Results[name] {
			other = append(other, fmt.Sprintf("%s: was %+v, is %+v", name, want.Results[name],
				got.Results[name]))
		}
	}
	sameVersion := want.Version == ModelVersion
	switch {
	case sameVersion && maps.Equal(got.Traces, want.Traces) && maps.Equal(got.Results, want.Results):
	case sameVersion && (len(other) > 0 || !*testkit.Update):
		t.Errorf("The model gives other results, and kept ones would be used as if they were its own. "+
			"If that is meant, raise ModelVersion in version.go. Then, or for a new scenario, run "+
			"go test ./experiments/run -run TestModelVersion -update.\n%s", strings.Join(other, "\n"))
	case *testkit.Update:
		text, err := json.MarshalIndent(&got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		testkit.Rewrite(t, path, string(text)+"\n")
	default:
		t.Errorf("%s is of version %q and the model of %q: run go test ./experiments/run -run "+
			"TestModelVersion -update", path, want.Version, ModelVersion)
	}
}

// goldenRun simulates the default configuration with some settings.
func goldenRun(t *testing.T, sets []string) goldenResult {
	t.Helper()
	sets = append([]string{"workload.rate=0.2", "seed=[1]"}, sets...)
	points := mustLoad(t, "", sets...)
	if len(points) != 1 {
		t.Fatalf("%v: %d points", sets, len(points))
	}
	tables := sha256.New()
	s, err := NewSimulator().Run(t.Context(), points[0], Sink{Requests: tables, Steps: tables,
		Trace: io.Discard})
	if err != nil || s.Completed == 0 {
		t.Fatalf("%v: %d requests completed: %v", sets, s.Completed, err)
	}
	return goldenResult{TTFT: s.TTFT, TBT: s.TBT, E2E: s.E2E, Throughput: s.ThroughputTokS,
		Steps: s.Steps, Preempted: int64(s.Preempted), Loaded: s.BlocksLoadedPerStep, Hits: s.HitRatio,
		Tables: hex.EncodeToString(tables.Sum(nil)[:8])}
}
