package memory

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// One operation is a request of 12,288 tokens, a third from earlier turns, and 256 of output,
// through HBM of 70,000 blocks, DRAM of 6,000 chunks and SSD of 100,000.
func BenchmarkPool(b *testing.B) { benchmark(b, NewPool(70_000, 16, 0, below70k())) }

// The same through a tree.
func BenchmarkRadix(b *testing.B) { benchmark(b, NewRadix(70_000, 16, 0, below70k())) }

func below70k() *Lower { return &Lower{Chunk: 16, DRAM: 6_000, SSD: 100_000, Eviction: LRU} }

func benchmark(b *testing.B, p tiered) {
	var g Grant
	content := prefix.Content{Prompt: make([]prefix.Piece, 24)}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range content.Prompt {
			turn := n // of a session, after a while
			if i < 8 {
				turn = n % 5_000
			}
			content.Prompt[i] = prefix.Piece{ID: des.Hash(uint64(turn*24+i)) | 1, Tokens: 512}
		}
		g.Reset(&content, 24*512, 24*512, 256, uint64(n)+1)
		p.Plan(des.Time(n))
		p.Match(&g, 24*512)
		for tokens := 512 * 24; tokens < 512*24+256; tokens++ {
			if !p.Grow(&g, tokens, tokens) {
				b.Fatal("no room")
			}
		}
		p.Release(&g, true)
		p.Written(des.Time(n), des.Time(n))
	}
}
