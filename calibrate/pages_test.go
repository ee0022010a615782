package calibrate

import (
	"math"
	"testing"

	"sparseserve/cuda"
)

// A layer's blocks in pages: head after head, those of a head a page apart, over
// all segments of the pool.
func TestPagePlaces(t *testing.T) {
	const page, block = 64 * kib, 16 * kib
	pool := &hostPool{}
	for range 2 {
		pool.segments, pool.bytes = append(pool.segments, cuda.HostMemoryOf(make([]byte, 2*page))), pool.bytes+2*page
	}
	p := pool.paged([]int{3, 0, 1}, page, 2, block)
	want := []int64{3 * page, 0, page, 3*page + block, block, page + block}
	if len(p.offsets) != len(want) || len(p.ptrs) != len(want) {
		t.Fatalf("%d offsets and %d addresses, want %d", len(p.offsets), len(p.ptrs), len(want))
	}
	for i, offset := range want {
		segment := pool.segments[offset/(2*page)].Ptr()
		if p.offsets[i] != offset || p.ptrs[i] != segment+cuda.Ptr(offset%(2*page)) {
			t.Errorf("block %d is at %d, %#x, want %d, %#x", i, p.offsets[i], p.ptrs[i], offset, segment+cuda.Ptr(offset%(2*page)))
		}
	}
}

// What a block takes beside prefill has a row for each pool where that was
// measured, however long the same takes alone; where much came before the chunk
// is held out.
func TestFitBesideByPool(t *testing.T) {
	for _, measured := range [][2]float64{{0.150, 0.165}, {0.181, 0.192}, {0.210, 0.210}} { // s of 32 layers of 2048 blocks over 1 and 16 GiB
		p := truth("h200")
		s := &Samples{Records: []Record{
			{Point: point(probeLayersNone, shapes[0], 2048, 0, layersTimed), Samples: []float64{0.047}},
			{Point: point(probeLayersNone, shapes[0], 2048, 10240, layersTimed), Samples: []float64{0.066}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 0, layersTimed, basePool), Samples: []float64{measured[0]}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 10240, layersTimed, basePool), Samples: []float64{0.3}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 0, layersTimed, 16*kib), Samples: []float64{measured[1]}},
		}}
		models := fitBeside(s, p, source{"a test"})
		rows := p.Save.MemcpyBesidePools
		if len(models) != 1 || len(rows) != 2 || rows[0].PoolGiB != 1 || rows[1].PoolGiB != 16 {
			t.Fatalf("%v s: %d models, rows %+v", measured, len(models), rows)
		}
		m := models[0]
		if len(m.held) != 1 || m.held[0].At("prefix_tokens") != 10240 {
			t.Errorf("held out: %+v", m.held)
		}
		for i, at := range m.fit {
			if got := m.price(p, at); math.Abs(got/measured[i]-1) > 1e-3 {
				t.Errorf("%v s are priced %v s", measured[i], got)
			}
		}
		later := (0.066 - 0.047) / layersTimed // of the layer that hides no save
		if got := m.price(p, m.held[0]); math.Abs(got-measured[0]-later) > 1e-3*got {
			t.Errorf("the chunk held out is priced %v s, the one before it %v s", got, measured[0])
		}
	}
}
