package fleet

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// sentPrompts are the beginnings of the prompts that a replica was sent, as a router remembers
// them: in blocks of sentBlock tokens, the oldest forgotten first. A router does not see what a
// replica evicts. llm-d's prefix scorer and SGLang's router remember prompts in the same way.
type sentPrompts struct {
	known map[uint64]int // by key of a prompt's beginning: how many entries of order have it
	order []uint64       // a ring
	next  int
}

// A block has sentBlock tokens (llm-d's default is 64). At most mostSent blocks are remembered.
const sentBlock, mostSent = 64, 1 << 18

// newSentPrompts remembers as many tokens as the replica's KV memory holds.
func newSentPrompts(tokens int64) *sentPrompts {
	n := min(max(1, tokens/sentBlock), mostSent)
	return &sentPrompts{known: map[uint64]int{}, order: make([]uint64, n)}
}

// add remembers a prompt.
func (s *sentPrompts) add(c *prefix.Content) {
	for key := range blocksOf(c) {
		if old := s.order[s.next]; old != 0 {
			if s.known[old]--; s.known[old] == 0 {
				delete(s.known, old)
			}
		}
		s.order[s.next] = key
		s.known[key]++
		s.next = (s.next + 1) % len(s.order)
	}
}

// tokens returns how many first tokens of a prompt are remembered.
func (s *sentPrompts) tokens(c *prefix.Content) (n int64) {
	for key := range blocksOf(c) {
		if s.known[key] == 0 {
			break
		}
		n += sentBlock
	}
	return n
}

// blocksOf yields the keys of a prompt's beginnings.
func blocksOf(c *prefix.Content) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if c == nil {
			return
		}
		chain := prefix.NewChain(c.Prompt)
		for n := sentBlock; ; n += sentBlock {
			if key, ok := chain.Key(n); !ok || !yield(key) {
				return
			}
		}
	}
}

// byPrefix picks the replica with the fewest tokens to compute: its queued tokens minus the tokens
// of the request that it received before. This is the cost of Dynamo's KV router.
func byPrefix(v *View, _ *sim.Arrival) int {
	return least(v, func(c *Candidate) int64 { return c.Tokens - c.Sent })
}
