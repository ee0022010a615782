package main

import "github.com/sparseserve/sparseserve/cuda"

// link measures the ceilings: large copies over the host link and within HBM, and a launch.
func link(b *bench) {
	const bytes = 1 << 30
	host := b.pinned(bytes, cuda.HugePages)
	near, far := b.random(bytes), b.alloc(2*bytes) // 2 GiB each
	for _, c := range []struct {
		what     string
		dst, src cuda.Ptr
		bytes    int64
		moved    int64
		rate     *float64
	}{
		{"D2H, one memcpy of 1 GiB", host.Ptr(), near, bytes, bytes, &b.d2h},
		{"H2D, one memcpy of 1 GiB", near, host.Ptr(), bytes, bytes, &b.h2d},
		{"device copy of 2 GiB, read + write", far, near, 2 * bytes, 4 * bytes, &b.copy},
	} {
		t := b.time(10, &cuda.MemcpyArgs{Dst: c.dst, Src: c.src, Bytes: c.bytes})
		*c.rate = gbs(c.moved, t)
		row(c.what, t, "%.1f GB/s", *c.rate)
	}
	for _, c := range []struct {
		what  string
		clock cuda.Clock
	}{
		{"empty kernel, submit", cuda.SubmitClock},
		{"empty kernel, submit and synchronise", cuda.WallClock},
		{"empty kernel, GPU time between events", cuda.EventClock},
	} {
		t := b.timeBy(c.clock, 200, &cuda.EmptyArgs{})
		row(c.what, t, "%.1f us", t.median*1e3)
	}
}
