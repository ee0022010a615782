package live

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// hitDevice is the part of a device that names the blocks of a prefix: 8 KV heads, blocks of 16
// tokens.
func hitDevice(tb testing.TB, hit int) (*paged, *request) {
	m := emulator.New(emulator.Config{})
	d := &Device{m: m, cfg: Config{Spec: &sim.Spec{Offload: sim.OffloadSpec{Load: "memcpy"}}},
		geo: kv.Geometry{Layers: 2, KVHeads: 8, BlockTokens: 16, BlockBytes: 64}}
	d.stage = mem.Staging{Machine: m, Fail: func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}}
	d.dram = mem.NewHostPool(m, d.geo.BlockBytes, d.geo.Groups(), 1<<30, 1<<20)
	r := &request{hit: hit}
	for range hit {
		page, err := d.dram.Alloc()
		if err != nil {
			tb.Fatal(err)
		}
		r.pages = append(r.pages, page)
	}
	r.layer.At, r.other.At, r.other.Bytes = 1<<40, 1<<41, 1
	return &paged{Device: d}, r
}

// BenchmarkPrefixLoad is the host's part of one layer's load of a prefix of 5,000 tokens.
func BenchmarkPrefixLoad(b *testing.B) {
	d, r := hitDevice(b, 312)
	r.tokens = make([]int32, 16*400)
	of := []*request{r}
	b.ReportAllocs()
	for b.Loop() {
		d.stage.Reset()
		d.prefixLoad(1, of, AheadCTAs)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(8*312), "ns/block")
}
