package calibrate

import (
	"math"
	"testing"

	"sparseserve/cuda"
	"sparseserve/hw"
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

// Saves beside prefill that are faster than the same alone, as those to a few
// pages may be, have a figure too, and one or the other prices them.
func TestFitBesideBothWays(t *testing.T) {
	for _, seconds := range []float64{0.150, 0.210} { // of 32 layers of 2048 blocks
		p := truth("h200")
		p.Save.MemcpyBeside, p.Save.MemcpyPaged = hw.Figure{}, hw.Figure{}
		s := &Samples{Records: []Record{
			{Point: point(probeLayersNone, shapes[0], 2048, 0, layersTimed), Samples: []float64{0.047}},
			{Point: point(probePrefillMemcpy, shapes[0], 2048, 0, layersTimed, basePool), Samples: []float64{seconds}},
		}}
		alone, err := p.SaveSeconds(hw.SaveMemcpy, 2048, 16*kib, basePool*mib, 0)
		if err != nil {
			t.Fatal(err)
		}
		faster := seconds < layersTimed*alone
		models := fitBeside(s, p, source{"a test"})
		if len(models) != 1 || p.Save.MemcpyPaged.Set() != faster || p.Save.MemcpyBeside.Set() == faster {
			t.Fatalf("%v s, %.3f alone: %d models, %+v longer, %+v less", seconds, layersTimed*alone, len(models), p.Save.MemcpyBeside, p.Save.MemcpyPaged)
		}
		if got := models[0].price(p, models[0].fit[0]); math.Abs(got/seconds-1) > 1e-3 {
			t.Errorf("%v s are priced %v s", seconds, got)
		}
	}
}
