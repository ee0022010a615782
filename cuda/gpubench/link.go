package main

import (
	"sparseserve/cuda"
)

// link measures the ceilings: large copies over the host link and inside HBM, and the cost of a launch.
func link(b *bench) error {
	const bytes = 1 << 30
	host, err := b.pinned(bytes, cuda.HugePages)
	if err != nil {
		return err
	}
	near, err := b.random(bytes) // 2 GiB
	if err != nil {
		return err
	}
	far, err := b.alloc(2 * bytes)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what  string
		args  cuda.MemcpyArgs
		moved int64
		rate  *float64
	}{
		{"D2H, one memcpy of 1 GiB", cuda.MemcpyArgs{Dst: host.Ptr(), Src: near, Bytes: bytes}, bytes, &b.d2h},
		{"H2D, one memcpy of 1 GiB", cuda.MemcpyArgs{Dst: near, Src: host.Ptr(), Bytes: bytes}, bytes, &b.h2d},
		{"device copy of 2 GiB, read + write", cuda.MemcpyArgs{Dst: far, Src: near, Bytes: 2 * bytes}, 4 * bytes, &b.copy},
	} {
		t, err := b.time(10, &c.args)
		if err != nil {
			return err
		}
		*c.rate = gbs(c.moved, t)
		row(c.what, t, "%.1f GB/s", *c.rate)
	}
	for _, c := range []struct {
		what  string
		clock cuda.Clock
	}{{"empty kernel, submit", cuda.SubmitClock}, {"empty kernel, submit and synchronise", cuda.WallClock}, {"empty kernel, GPU time between events", cuda.EventClock}} {
		t, err := b.timeBy(c.clock, 200, &cuda.EmptyArgs{})
		if err != nil {
			return err
		}
		row(c.what, t, "%.1f us", t.median*1e3)
	}
	return nil
}
