package live

import (
	"fmt"

	"sparseserve/cuda"
)

// hostPool is the DRAM tier. A page holds one block of tokens for every (layer, KV head) group, so that a request needs one number a block and
// the blocks of a group still lie scattered, a page apart. Memory is pinned slab by slab as it is needed.
type hostPool struct {
	m          Machine
	pageBytes  int64
	blockBytes int64
	slabPages  int
	most       int // pages
	slabs      []cuda.HostMemory
	free       []int32
	made       int
}

func newHostPool(m Machine, blockBytes int64, groups int, capacity, slabBytes int64) *hostPool {
	page := blockBytes * int64(groups)
	return &hostPool{m: m, pageBytes: page, blockBytes: blockBytes, most: int(capacity / page), slabPages: max(1, int(slabBytes/page))}
}

// take returns a free page.
func (h *hostPool) take() (int32, error) {
	if len(h.free) == 0 {
		if err := h.grow(); err != nil {
			return 0, err
		}
	}
	p := h.free[len(h.free)-1]
	h.free = h.free[:len(h.free)-1]
	return p, nil
}

// grow pins one more slab.
func (h *hostPool) grow() error {
	n := min(h.slabPages, h.most-h.made)
	if n <= 0 {
		return fmt.Errorf("live: the host pool of %d pages is in use; the server admitted more than system.dram_gib", h.most)
	}
	slab, err := h.m.HostAlloc(int64(n)*h.pageBytes, cuda.HugePages)
	if err != nil {
		return fmt.Errorf("pinning %s of host memory for KV beside %s; lower system.dram_gib: %w", gib(int64(n)*h.pageBytes), gib(int64(h.made)*h.pageBytes), err)
	}
	h.slabs = append(h.slabs, slab)
	for i := n - 1; i >= 0; i-- {
		h.free = append(h.free, int32(h.made+i))
	}
	h.made += n
	return nil
}

func (h *hostPool) give(pages []int32) { h.free = append(h.free, pages...) }

// block returns the address of one group's block in a page.
func (h *hostPool) block(page int32, group int) cuda.Ptr {
	slab, at := int(page)/h.slabPages, int64(int(page)%h.slabPages)
	return h.slabs[slab].Ptr() + cuda.Ptr(at*h.pageBytes+int64(group)*h.blockBytes)
}

func (h *hostPool) close() error {
	for _, s := range h.slabs {
		if err := h.m.HostFree(s); err != nil {
			return err
		}
	}
	h.slabs = nil
	return nil
}

// hbmPages are the pages of a cache without offloading: KVHeads slots in each layer's part of the pool.
type hbmPages struct {
	free []int32
	most int
}

func newHBMPages(n int) *hbmPages {
	p := &hbmPages{most: n}
	for i := n - 1; i >= 0; i-- {
		p.free = append(p.free, int32(i))
	}
	return p
}

func (p *hbmPages) take() (int32, error) {
	if len(p.free) == 0 {
		return 0, fmt.Errorf("live: the %d pages of HBM are in use; the server admitted more than there are", p.most)
	}
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return page, nil
}

func (p *hbmPages) give(pages []int32) { p.free = append(p.free, pages...) }
