package mem

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// Pages allocates pages by number: of DRAM with offloading (*HostPool), of HBM without (*HBMPages).
type Pages interface {
	Alloc() (int32, error)
	Free([]int32)
}

// HostPool is the DRAM tier. A page holds one block of tokens for every (layer, KV head) group, so
// a request needs one number per block, and a group's blocks are one page apart. Memory is pinned
// in slabs on demand.
type HostPool struct {
	HBMPages
	m          cuda.Machine
	pageBytes  int64
	blockBytes int64
	slabPages  int
	slabs      []cuda.HostMemory
	pinned     int // pages
}

// NewHostPool returns a pool of at most the given bytes, pinned in slabs.
func NewHostPool(m cuda.Machine, blockBytes int64, groups int, capacity,
	slabBytes int64) *HostPool {
	page := blockBytes * int64(groups)
	return &HostPool{m: m, pageBytes: page, blockBytes: blockBytes,
		HBMPages: HBMPages{most: int(capacity / page)}, slabPages: max(1, int(slabBytes/page))}
}

// Pinned returns the number of pinned pages.
func (h *HostPool) Pinned() int { return h.pinned }

// Alloc returns a free page.
func (h *HostPool) Alloc() (int32, error) {
	if len(h.free) == 0 {
		if err := h.grow(); err != nil {
			return 0, err
		}
	}
	return h.HBMPages.Alloc()
}

// grow pins one more slab.
func (h *HostPool) grow() error {
	n := min(h.slabPages, h.most-h.pinned)
	if n <= 0 {
		return fmt.Errorf("live: the host pool of %d pages is in use; "+
			"the server admitted more than system.dram_gib", h.most)
	}
	slab, err := h.m.HostAlloc(int64(n)*h.pageBytes, cuda.HugePages)
	if err != nil {
		return fmt.Errorf("pinning %s of host memory for KV, with %s pinned; lower "+
			"system.dram_gib: %w",
			GiB(int64(n)*h.pageBytes), GiB(int64(h.pinned)*h.pageBytes), err)
	}
	h.slabs = append(h.slabs, slab)
	for i := n - 1; i >= 0; i-- {
		h.free = append(h.free, int32(h.pinned+i))
	}
	h.pinned += n
	return nil
}

// Reach pins memory until it includes the given pages, which another allocator assigned. Alloc and
// Free of such a pool must not be used.
func (h *HostPool) Reach(pages []int32) error {
	for _, p := range pages {
		for int(p) >= h.pinned {
			if err := h.grow(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Block returns the address of one group's block in a page.
func (h *HostPool) Block(page int32, group int) cuda.Ptr {
	slab, at := int(page)/h.slabPages, int64(int(page)%h.slabPages)
	return h.slabs[slab].Ptr() + cuda.Ptr(at*h.pageBytes+int64(group)*h.blockBytes)
}

// HBMPages are the pages of a cache without offloading: KVHeads slots in each layer's part of the
// pool.
type HBMPages struct {
	free []int32
	most int
}

// NewHBMPages returns n free pages.
func NewHBMPages(n int) *HBMPages {
	p := &HBMPages{most: n}
	for i := n - 1; i >= 0; i-- {
		p.free = append(p.free, int32(i))
	}
	return p
}

// Alloc returns a free page.
func (p *HBMPages) Alloc() (int32, error) {
	if len(p.free) == 0 {
		return 0, fmt.Errorf("live: the %d pages of HBM are in use; "+
			"the server admitted more than there are", p.most)
	}
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return page, nil
}

// Free returns pages.
func (p *HBMPages) Free(pages []int32) { p.free = append(p.free, pages...) }
