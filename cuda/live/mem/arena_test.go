package mem

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// Pieces never overlap and are as large as asked for; once all are freed, each slab is one free
// piece again, and after closing nothing is held.
func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := emulator.New(emulator.Config{})
		defer m.Close()
		owner := &Owner{Machine: m}
		a := NewArena(owner, 1<<16)
		var held []Piece
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				a.Free(held[i])
				held = slices.Delete(held, i, i+1)
				continue
			}
			bytes := rapid.Int64Range(1, 1<<17).Draw(t, "bytes")
			p, err := a.Alloc(bytes, "a piece")
			if err != nil {
				t.Fatal(err)
			}
			if p.Bytes < bytes {
				t.Fatalf("%d bytes for %d", p.Bytes, bytes)
			}
			held = append(held, p)
			disjoint(t, held)
		}
		for _, p := range held {
			a.Free(p)
		}
		if len(a.free) != a.Slabs() || a.used != 0 {
			t.Fatalf("%d free pieces in %d slabs, %d bytes in use", len(a.free), a.Slabs(), a.used)
		}
		if err := owner.Close(); err != nil {
			t.Fatal(err)
		}
		if device, _ := m.Held(); device != 0 {
			t.Fatalf("%d bytes are left", device)
		}
	})
}

// disjoint checks the pieces in the order of their addresses.
func disjoint(t *rapid.T, pieces []Piece) {
	sorted := slices.SortedFunc(slices.Values(pieces), func(a, b Piece) int {
		return int(int64(a.At) - int64(b.At))
	})
	for i := 1; i < len(sorted); i++ {
		if p := sorted[i-1]; p.At+cuda.Ptr(p.Bytes) > sorted[i].At {
			t.Fatalf("pieces at %#x and %#x overlap", uintptr(p.At), uintptr(sorted[i].At))
		}
	}
}
