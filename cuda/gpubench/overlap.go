package main

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

// overlap is the slow-down of a layer's kernels in sequence on a stream, while FlashH2D loads on
// two SMs as for prefixes, and while FlashD2H saves. It includes a time per launch, because the GPU
// reads launches over the same link, and the slow-down of linears whose CTAs fill the SMs a whole
// number of times. Transfers last longer than many samples, so the median covers samples that one
// transfer overlaps throughout.
func overlap(b *bench) {
	slab, pool := b.slabs()
	p := b.plan(slab, pool, 32768, 16<<10)
	host, device := b.pinned(64<<10, cuda.DriverPages), b.alloc(64<<10)
	saver := got(b.SaverCreate(16, 8<<20, 8))
	const short, long = 64, 6 // launches of a sample
	measure := func(what string, op cuda.Operation, launches int) {
		timed := cuda.Bench{Calls: slices.Repeat([]cuda.Operation{op}, launches), Warmup: 3, Repeats: 40}
		each := func(t timing) float64 { return t.median / float64(launches) * 1e3 }
		before := got(b.Bench(timed))
		var lost [2]float64
		for i, other := range []cuda.Operation{p.load(2), p.save(saver)} {
			samples, _, _, err := b.BenchOverlapped(timed, other)
			must(err)
			after := got(b.Bench(timed))
			lost[i] = each(summary(samples)) - each(summary(append(before, after...)))
			before = after
		}
		row(what, summary(before), "%.2f us each, %+.2f while FlashH2D loads, %+.2f while FlashD2H saves",
			each(summary(before)), lost[0], lost[1])
	}
	measure("empty kernel", &cuda.EmptyArgs{}, short)
	measure("4 KiB from the host",
		&cuda.CarryArgs{Dst: device, Src: host.Ptr(), Bytes: 4 << 10}, short)
	measure("4 KiB to the host",
		&cuda.CarryArgs{Dst: host.Ptr(), Src: device, Bytes: 4 << 10}, short)
	for _, k := range b.layerParts(layerShapes[1], 128)[1:6] {
		measure(k.what+" of 128 tokens", k.op, short)
	}
	for _, tokens := range []int{128, 256, 384, 512, 1024} {
		measure(fmt.Sprintf("prefill of %d tokens, prefix 8192", tokens),
			b.prefillArgs(chunk{tokens, 8192, 32, 8}), long)
		for _, shape := range [][2]int{{4096, 6144}, {4096, 4096}, {4096, 28672}, {14336, 4096}} {
			in, out := shape[0], shape[1]
			measure(fmt.Sprintf("linear of %d tokens, %d x %d", tokens, in, out), &cuda.LinearArgs{
				X: b.random(tokens * in), W: b.random(in * out), Y: b.random(tokens * out),
				Tokens: int32(tokens), In: int32(in), Out: int32(out)}, long)
		}
	}
	must(b.SaverDestroy(saver))
	records(b, p.load(2))
}

// records times the recording of an event after a kernel, alone and while FlashH2D loads.
func records(b *bench, load cuda.Operation) {
	const launches, rounds = 32, 15
	compute, other := got(b.StreamCreate(true)), got(b.StreamCreate(true))
	from, to := got(b.EventCreate(true)), got(b.EventCreate(true))
	for _, c := range []struct {
		what   string
		record []cuda.Event
	}{
		{"empty kernel", nil},
		{"empty kernel and an event", []cuda.Event{got(b.EventCreate(false))}},
		{"empty kernel and a timed event", []cuda.Event{got(b.EventCreate(true))}},
	} {
		var us [2]timing
		for loading := range us {
			var all []float64
			for range rounds {
				if loading == 1 {
					must(b.Launch(load, other))
				}
				must(b.EventRecord(from, compute))
				for range launches {
					must(b.Launch(&cuda.EmptyArgs{}, compute))
					for _, e := range c.record {
						must(b.EventRecord(e, compute))
					}
				}
				must(b.EventRecord(to, compute), b.DeviceSync())
				all = append(all, got(b.EventMilliseconds(from, to))/launches)
			}
			us[loading] = summary(all)
		}
		row(c.what, us[0], "%.2f us each, %.2f while FlashH2D loads", us[0].median*1e3, us[1].median*1e3)
		for _, e := range c.record {
			must(b.EventDestroy(e))
		}
	}
	must(b.EventDestroy(from), b.EventDestroy(to), b.StreamDestroy(compute), b.StreamDestroy(other))
}
