package calibrate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/cuda"
)

// hostPool is pinned memory that only grows, because pinning takes most of a second per GiB.
// Segments are whole GiB, so no block straddles two.
type hostPool struct {
	segments []cuda.HostMemory
	bytes    int64
}

// grow grows the pool to at least the given bytes. Each KiB of new memory begins with its own
// address, so that a block from a wrong place is detected.
func (h *hostPool) grow(s cuda.Machine, bytes int64) error {
	missing := (bytes - h.bytes + gib - 1) / gib * gib
	if missing <= 0 {
		return nil
	}
	m, err := s.HostAlloc(missing, cuda.HugePages)
	if err != nil {
		return fmt.Errorf("pinning %s more host memory: %w", size(missing), err)
	}
	b := m.Bytes()
	for at := 0; at < len(b); at += kib {
		binary.NativeEndian.PutUint64(b[at:], uint64(m.Ptr())+uint64(at))
	}
	h.segments = append(h.segments, m)
	h.bytes += missing
	return nil
}

// at returns the memory from an offset of the pool to the end of its segment.
func (h *hostPool) at(offset int64) (cuda.Ptr, []byte) {
	for _, m := range h.segments {
		if n := int64(len(m.Bytes())); offset >= n {
			offset -= n
			continue
		}
		return m.Ptr() + cuda.Ptr(offset), m.Bytes()[offset:]
	}
	panic(fmt.Sprintf("calibrate: %d bytes beyond the host pool", offset))
}

// hostBlocks are distinct blocks of the pool in random order.
type hostBlocks struct {
	offsets []int64
	ptrs    []cuda.Ptr
}

func (b *hostBlocks) add(h *hostPool, offset int64) {
	ptr, _ := h.at(offset)
	b.offsets, b.ptrs = append(b.offsets, offset), append(b.ptrs, ptr)
}

// host grows the pool to the given bytes and returns them.
func (g *gpuRun) host(bytes int64) (cuda.Ptr, []byte) {
	if g.try(func() error { return g.pool.grow(g.s, bytes) }); g.err != nil {
		return 0, nil
	}
	return g.pool.at(0)
}

// scattered chooses random blocks in the first bytes of the pool.
func (g *gpuRun) scattered(count, blockBytes, poolBytes int64) (b hostBlocks) {
	if g.try(func() error { return g.pool.grow(g.s, poolBytes) }); g.err != nil {
		return b
	}
	for _, i := range distinct(g.r, count, poolBytes/blockBytes) {
		b.add(&g.pool, i*blockBytes)
	}
	return b
}

// distinct draws count of the numbers below n, in random order.
func distinct(r *rand.Rand, count, n int64) []int64 {
	if count > n/2 { // all of them or most
		all := counted[int64](n)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:count]
	}
	drawn := make([]int64, 0, count)
	known := make(map[int64]bool, count)
	for int64(len(drawn)) < count {
		if i := r.Int64N(n); !known[i] {
			known[i] = true
			drawn = append(drawn, i)
		}
	}
	return drawn
}

// row returns the addresses of contiguous blocks.
func row(start cuda.Ptr, count, blockBytes int64) []cuda.Ptr {
	p := make([]cuda.Ptr, count)
	for i := range p {
		p[i] = start + cuda.Ptr(int64(i)*blockBytes)
	}
	return p
}
