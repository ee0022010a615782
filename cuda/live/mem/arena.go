package mem

import (
	"fmt"
	"slices"
	"sort"

	"github.com/sparseserve/sparseserve/cuda"
)

// Arena allocates pieces of device memory with the lifetime of requests: first fit over large
// slabs, because an allocation by the driver waits for the GPU. A freed piece may be reused at
// once: all work that used it is already on the one stream that computes.
type Arena struct {
	m     cuda.Machine
	slab  int64 // bytes of a slab, or more for a larger piece
	slabs []cuda.Ptr
	free  []Piece // by address, neighbours joined
	used  int64
}

// Piece is memory of an arena; the zero value is empty.
type Piece = Buffer

const arenaAlign = 512

// NewArena returns an arena that allocates slabs of the given size.
func NewArena(m cuda.Machine, slab int64) *Arena { return &Arena{m: m, slab: slab} }

// Slabs returns how often the arena has allocated.
func (a *Arena) Slabs() int { return len(a.slabs) }

// Alloc returns a piece of at least the given bytes.
func (a *Arena) Alloc(bytes int64, what string) (Piece, error) {
	bytes = max(arenaAlign, aligned(bytes, arenaAlign))
	i := a.fit(bytes)
	if i < 0 {
		slab := max(a.slab, bytes)
		at, err := a.m.DeviceAlloc(slab)
		if err != nil {
			return Piece{}, fmt.Errorf("%s, %s with %s in use: %w", what, GiB(bytes), GiB(a.used),
				err)
		}
		a.slabs = append(a.slabs, at)
		a.insert(Piece{at, slab})
		i = a.fit(bytes)
	}
	f := &a.free[i]
	p := Piece{f.At, bytes}
	f.At += cuda.Ptr(bytes)
	if f.Bytes -= bytes; f.Bytes == 0 {
		a.free = slices.Delete(a.free, i, i+1)
	}
	a.used += bytes
	return p, nil
}

// fit returns the first free piece that is large enough, or -1.
func (a *Arena) fit(bytes int64) int {
	return slices.IndexFunc(a.free, func(f Piece) bool { return f.Bytes >= bytes })
}

// Free returns a piece; a zero piece is ignored.
func (a *Arena) Free(p Piece) {
	if p.Bytes > 0 {
		a.used -= p.Bytes
		a.insert(p)
	}
}

func (a *Arena) insert(p Piece) {
	i := sort.Search(len(a.free), func(i int) bool { return a.free[i].At > p.At })
	a.free = slices.Insert(a.free, i, p)
	a.join(i)
	if i > 0 {
		a.join(i - 1)
	}
}

// join merges pieces i and i+1 if they are adjacent in one slab.
func (a *Arena) join(i int) {
	if i+1 == len(a.free) {
		return
	}
	p, next := &a.free[i], a.free[i+1]
	if p.At+cuda.Ptr(p.Bytes) != next.At || slices.Contains(a.slabs, next.At) {
		return
	}
	p.Bytes += next.Bytes
	a.free = slices.Delete(a.free, i+1, i+2)
}
