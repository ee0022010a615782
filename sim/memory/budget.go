package memory

import (
	"fmt"
	"iter"
	"math"
)

// Budget counts whole-model blocks of a fixed number of tokens, as vLLM's block manager does.
// It counts HBM blocks without offloading, and DRAM blocks with offloading.
type Budget struct {
	unshared
	blockTokens int
	total       int64
	used        int64
	watermark   int64
	Windows     Windows // of layers, if some have windows
}

// Windows describes layers that keep only the blocks of a request's newest tokens. A budget
// with such layers counts blocks per layer.
type Windows struct {
	Layers int64 // layers with a window
	Full   int64 // layers without a window
	Blocks int64 // blocks that a layer with a window keeps
}

// NewBudget returns a budget of total blocks. Admissions leave the share watermark free.
func NewBudget(total int64, blockTokens int, watermark float64) *Budget {
	return &Budget{blockTokens: blockTokens, total: total,
		watermark: int64(watermark * float64(total))}
}

func (b *Budget) blocks(tokens int) int64 {
	n := int64((tokens + b.blockTokens - 1) / b.blockTokens)
	if w := &b.Windows; w.Layers > 0 {
		return w.Full*n + w.Layers*min(n, w.Blocks)
	}
	return n
}

// Fits reports whether a request of the given number of tokens could ever be admitted.
func (b *Budget) Fits(tokens int) bool { return b.total-b.blocks(tokens) >= b.watermark }

// Match returns the number of prompt tokens that the grant lists as cached.
func (b *Budget) Match(g *Grant, _ int) int { return g.Cached }

// Admit grants blocks for the given tokens if the watermark remains free; otherwise it returns
// false.
func (b *Budget) Admit(g *Grant, tokens, _ int) bool {
	need := b.blocks(tokens) - g.Blocks
	if b.total-b.used-need < b.watermark {
		return false
	}
	b.take(g, need)
	return true
}

// Grow extends a grant to the given tokens. It may use all blocks, including the watermark.
func (b *Budget) Grow(g *Grant, tokens, _ int) bool {
	need := b.blocks(tokens) - g.Blocks
	if need <= 0 {
		return true
	}
	if b.used+need > b.total {
		return false
	}
	b.take(g, need)
	return true
}

// Left returns the blocks that are free after a grant to the given tokens, and the watermark.
func (b *Budget) Left(g *Grant, tokens int) (left, watermark int64) {
	return b.total - b.used - (b.blocks(tokens) - g.Blocks), b.watermark
}

// Room reports whether enough blocks are free to extend a grant to the given tokens.
func (b *Budget) Room(g *Grant, tokens int) bool {
	return b.used+b.blocks(tokens)-g.Blocks <= b.total
}

func (b *Budget) take(g *Grant, blocks int64) {
	b.used += blocks
	g.Blocks += blocks
}

// Release frees a grant's blocks.
func (b *Budget) Release(g *Grant, _ bool) {
	b.used -= g.Blocks
	g.Blocks = 0
	if b.used < 0 {
		panic(fmt.Sprintf("memory: budget released below zero: %d blocks used", b.used))
	}
}

// Check verifies that the used blocks equal the sum of the grants.
func (b *Budget) Check(grants iter.Seq[*Grant]) error {
	var blocks int64
	for g := range grants {
		blocks += g.Blocks
	}
	if blocks != b.used || b.used > b.total {
		return fmt.Errorf("%d blocks used of %d, requests hold %d", b.used, b.total, blocks)
	}
	return nil
}

// Used and Total return numbers of blocks.
func (b *Budget) Used() int64  { return b.used }
func (b *Budget) Total() int64 { return b.total }

// Tokens returns the number of tokens of one request that fit in n blocks.
func (b *Budget) Tokens(n int64) int64 {
	switch w := &b.Windows; {
	case w.Layers == 0:
	case w.Full == 0 && n >= w.Layers*w.Blocks:
		return math.MaxInt64
	case n <= (w.Full+w.Layers)*w.Blocks:
		n /= w.Full + w.Layers
	default:
		n = (n - w.Layers*w.Blocks) / w.Full
	}
	return n * int64(b.blockTokens)
}
