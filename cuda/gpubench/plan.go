package main

import (
	"sparseserve/cuda"
)

// plan is count blocks scattered over a pinned slab, and where each goes in device memory.
type plan struct {
	count, block       int64
	host, device       cuda.Ptr        // address arrays on the GPU, for kernels
	hostHost, hostDev  cuda.HostMemory // the same in pinned memory, for the memcpy forms
	contiguous         cuda.Ptr        // a device tensor of all blocks
	contiguousOnDevice cuda.Ptr        // addresses of its blocks, on the GPU
}

func (b *bench) plan(slab cuda.HostMemory, pool cuda.Ptr, poolBytes, count, block int64) (*plan, error) {
	p := &plan{count: count, block: block, contiguous: pool}
	var err error
	if p.hostHost, err = b.pinned(8*count, cuda.DriverPages); err != nil {
		return nil, err
	}
	if p.hostDev, err = b.pinned(8*count, cuda.DriverPages); err != nil {
		return nil, err
	}
	from, to := b.rand().Perm(len(slab.Bytes())/int(block)), b.rand().Perm(int(poolBytes/block))
	run := make([]cuda.Ptr, count)
	for i := range run {
		cuda.Slice[cuda.Ptr](p.hostHost)[i] = slab.Ptr() + cuda.Ptr(int64(from[i])*block)
		cuda.Slice[cuda.Ptr](p.hostDev)[i] = pool + cuda.Ptr(int64(to[i])*block)
		run[i] = pool + cuda.Ptr(int64(i)*block)
	}
	if p.host, err = upload(b, cuda.Slice[cuda.Ptr](p.hostHost)); err != nil {
		return nil, err
	}
	if p.device, err = upload(b, cuda.Slice[cuda.Ptr](p.hostDev)); err != nil {
		return nil, err
	}
	p.contiguousOnDevice, err = upload(b, run)
	return p, err
}

// slabs returns 1 GiB of pinned memory and of device memory, random.
func (b *bench) slabs() (cuda.HostMemory, cuda.Ptr, int64, error) {
	const bytes = 1 << 30
	slab, err := b.pinned(bytes, cuda.HugePages)
	if err != nil {
		return slab, 0, 0, err
	}
	pool, err := b.random(bytes / 2)
	if err != nil {
		return slab, 0, 0, err
	}
	if err := b.Launch(&cuda.MemcpyArgs{Dst: slab.Ptr(), Src: pool, Bytes: bytes}, 0); err != nil {
		return slab, 0, 0, err
	}
	return slab, pool, bytes, b.DeviceSync()
}
