package calibrate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/cuda"
)

// hostPool is pinned memory that only grows: pinning takes most of a second a
// GiB. Segments are whole GiB, so no block straddles two.
type hostPool struct {
	segments []cuda.HostMemory
	bytes    int64
}

// grow makes the pool at least that large. Each KiB of new memory begins with
// its own address, so that a block from the wrong place shows.
func (h *hostPool) grow(s *cuda.Session, bytes int64) error {
	if missing := (bytes - h.bytes + gib - 1) / gib * gib; missing > 0 {
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
	}
	return nil
}

// at returns the memory from an offset of the pool on, to its segment's end.
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

// has says whether an address is in the pool.
func (h *hostPool) has(p cuda.Ptr) bool {
	for _, m := range h.segments {
		if p >= m.Ptr() && p < m.Ptr()+cuda.Ptr(len(m.Bytes())) {
			return true
		}
	}
	return false
}

// place is where count blocks lie, in random order, none twice.
type place struct {
	offsets []int64
	ptrs    []cuda.Ptr
}

// places chooses blocks anywhere in the first bytes of the pool.
func (g *gpuBench) places(s *cuda.Session, count, blockBytes, poolBytes int64) (place, error) {
	if err := g.pool.grow(s, poolBytes); err != nil {
		return place{}, err
	}
	var p place
	for _, i := range g.distinct(count, poolBytes/blockBytes) {
		ptr, _ := g.pool.at(i * blockBytes)
		p.offsets, p.ptrs = append(p.offsets, i*blockBytes), append(p.ptrs, ptr)
	}
	return p, nil
}

// distinct draws count of the numbers below n, in random order.
func (g *gpuBench) distinct(count, n int64) []int64 { return distinct(g.r, count, n) }

func distinct(r *rand.Rand, count, n int64) []int64 {
	if count > n/2 { // all of them or most
		all := make([]int64, n)
		for i := range all {
			all[i] = int64(i)
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:count]
	}
	drawn := make([]int64, 0, count)
	taken := make(map[int64]bool, count)
	for int64(len(drawn)) < count {
		if i := r.Int64N(n); !taken[i] {
			taken[i] = true
			drawn = append(drawn, i)
		}
	}
	return drawn
}

// pagePlaces are those of each layer's blocks as the serving loop has them: a page
// of host memory holds a block of tokens for every layer that the model has and KV
// head, so that a layer's lie side by side and those of the next block of tokens
// anywhere in the first bytes of the pool.
func (g *gpuBench) pagePlaces(s *cuda.Session, pageLayers, layers, heads, count, blockBytes, poolBytes int64) (all []place, err error) {
	if err := g.pool.grow(s, poolBytes); err != nil {
		return nil, err
	}
	page := pageLayers * heads * blockBytes
	if gib%page != 0 {
		return nil, fmt.Errorf("%w: pages of %s do not divide a piece of the pool, of 1 GiB", ErrSkip, size(page))
	}
	if count*page > poolBytes {
		return nil, fmt.Errorf("%w: %d pages of %s do not fit a pool of %s", ErrSkip, count, size(page), size(poolBytes))
	}
	pages := g.r.Perm(int(poolBytes / page))[:count]
	for layer := range layers {
		all = append(all, g.pool.paged(pages, page, layer*heads, heads, blockBytes))
	}
	return all, nil
}

// paged are the blocks of one layer in some pages, page after page; first is the
// layer's first block of a page.
func (h *hostPool) paged(pages []int, page, first, heads, blockBytes int64) (p place) {
	for _, i := range pages {
		for head := range heads {
			offset := int64(i)*page + (first+head)*blockBytes
			ptr, _ := h.at(offset)
			p.offsets, p.ptrs = append(p.offsets, offset), append(p.ptrs, ptr)
		}
	}
	return p
}

// row returns the addresses of blocks one after another.
func row(start cuda.Ptr, count, blockBytes int64) []cuda.Ptr {
	p := make([]cuda.Ptr, count)
	for i := range p {
		p[i] = start + cuda.Ptr(int64(i)*blockBytes)
	}
	return p
}
