package calibrate

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// A layer's blocks in pages: a page's heads side by side, page after page, over all
// segments of the pool.
func TestPagePlaces(t *testing.T) {
	const page, block = 64 * kib, 16 * kib
	pool := &hostPool{}
	for range 2 {
		pool.segments, pool.bytes = append(pool.segments, cuda.HostMemoryOf(make([]byte, 2*page))),
			pool.bytes+2*page
	}
	p := pool.paged([]int{3, 0, 1}, page, 1, 2, block) // after another layer's block
	want := []int64{3*page + block, 3*page + 2*block, block, 2 * block, page + block, page + 2*block}
	if len(p.offsets) != len(want) || len(p.ptrs) != len(want) {
		t.Fatalf("%d offsets and %d addresses, want %d", len(p.offsets), len(p.ptrs), len(want))
	}
	for i, offset := range want {
		segment := pool.segments[offset/(2*page)].Ptr()
		if p.offsets[i] != offset || p.ptrs[i] != segment+cuda.Ptr(offset%(2*page)) {
			t.Errorf("block %d is at %d, %#x, want %d, %#x", i, p.offsets[i], p.ptrs[i], offset,
				segment+cuda.Ptr(offset%(2*page)))
		}
	}
}

// The cost of a block during prefill has a row for each pool where that was
// measured, whatever the same costs without prefill, and whatever came before the chunk:
// both ends are in it, and what is between or longer is held out.
func TestFitOverlappedByPool(t *testing.T) {
	// s of 32 layers of 2048 blocks over 1 and 16 GiB
	for _, measured := range [][2]float64{{0.150, 0.165}, {0.181, 0.192}, {0.210, 0.214}} {
		p, err := hw.Load("h200", liveEngine, nil)
		must(err)
		s := &Samples{Records: []Record{
			{Point: point(probeLayersNone, shapes[0], 2048, 0, layersTimed), Samples: []float64{0.047}},
			{Point: point(probeLayersNone, shapes[0], 2048, 4096, layersTimed), Samples: []float64{0.055}},
			{Point: point(probeLayersNone, shapes[0], 2048, 10240, layersTimed), Samples: []float64{0.066}},
			{Point: point(probeLayersNone, shapes[0], 8192, 0, layersTimed), Samples: []float64{0.2}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 0, layersTimed, basePool),
				Samples: []float64{measured[0]}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 4096, layersTimed, basePool),
				Samples: []float64{0.3}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 10240, layersTimed, basePool),
				Samples: []float64{measured[0] + 0.006}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 0, layersTimed, 16*kib),
				Samples: []float64{measured[1]}},
			{Point: point(probePrefillMemcpy, shapes[0], 8192, 0, layersTimed, 16*kib),
				Samples: []float64{2}},
		}}
		models := fitOverlapped(s, p, source{"a test"})
		rows := p.Save.MemcpyOverlappedPools
		if len(models) != 1 || len(rows) != 2 || rows[0].PoolGiB != 1 || rows[1].PoolGiB != 16 {
			t.Fatalf("%v s: %d models, rows %+v", measured, len(models), rows)
		}
		m := models[0]
		if len(m.held) != 2 || m.held[0].At("prefix_tokens") != 4096 ||
			m.held[1].At("chunk_tokens") != 8192 {
			t.Errorf("held out: %+v", m.held)
		}
		if len(m.fit) != 3 {
			t.Fatalf("fitted to %+v", m.fit)
		}
		short, long := m.price(p, m.fit[0]), m.price(p, m.fit[1])
		later := (0.066 - 0.047) / layersTimed // of the layer that hides no save
		if mean := (short + long) / 2; math.Abs(mean/(measured[0]+0.003)-1) > 1e-3 ||
			math.Abs(long-short-later) > 1e-6 {
			t.Errorf("%v and %v s are priced %v and %v s", measured[0], measured[0]+0.006, short, long)
		}
		if got := m.price(p, m.fit[2]); math.Abs(got/measured[1]-1) > 1e-3 {
			t.Errorf("%v s are priced %v s", measured[1], got)
		}
	}
}
