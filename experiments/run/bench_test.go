package run

import (
	"context"
	"runtime"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Each benchmark runs one point from nothing, selection streams included, on
// one core, and reports simulated over wall time.

func BenchmarkSparseServeSampledHeads(b *testing.B) {
	benchPoint(b, "system.preset=sparseserve", "workload.rate=0.2")
}

func BenchmarkSparseServeAllHeads(b *testing.B) {
	benchPoint(b, "system.preset=sparseserve", "workload.rate=0.2", "workload.requests=100",
		"simulation.heads=full")
}

// The load of BenchmarkSparseServeSampledHeads with hot buffers: tokens in samples of 16, for
// blocks of 32 there.
func BenchmarkHotBuffers(b *testing.B) {
	benchPoint(b, "system.preset=hisparse", "selection.policy=arkvale",
		"workload.rate=0.2")
}

// The peer's published case: 2,000 requests of 8,192 tokens in and 200 out at
// 0.75 req/s, an 8B model on one A100, dense vLLM.
func BenchmarkDenseVLLM2000Requests(b *testing.B) {
	benchPoint(b, "system.preset=vllm", "model=llama3-8b", "gpu=a100-80gb", "workload.rate=0.75",
		"workload.requests=2000", "workload.trace=testdata/fixed-8192-200.csv", "workload.output_scale=1")
}

func BenchmarkTenThousandRequests(b *testing.B) {
	benchPoint(b, "system.preset=sparseserve", "workload.rate=0.2", "workload.requests=10000")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
}

func benchPoint(b *testing.B, sets ...string) {
	c, err := config.Load("", sets)
	if err != nil {
		b.Fatal(err)
	}
	p := c[0]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	simulated := 0.0
	for b.Loop() {
		sum, err := NewSimulator().Run(context.Background(), p, Sink{})
		if err != nil {
			b.Fatal(err)
		}
		if sum.Completed != p.Workload.Requests {
			b.Fatalf("%d of %d requests completed", sum.Completed, p.Workload.Requests)
		}
		simulated += sum.SimulatedS
	}
	b.ReportMetric(simulated/b.Elapsed().Seconds(), "x-realtime")
}
