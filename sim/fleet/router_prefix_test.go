package fleet

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// A memory of four blocks of 64 tokens: of two prompts that begin alike the second finds 128 tokens
// of the first, and after two other prompts it finds nothing.
func TestSentPromptsByHand(t *testing.T) {
	s := newSentPrompts(4*sentBlock + 63)
	text := func(ids ...uint64) *prefix.Content {
		c := &prefix.Content{}
		for _, id := range ids {
			c.Prompt = append(c.Prompt, prefix.Piece{ID: id, Tokens: sentBlock})
		}
		return c
	}
	s.add(text(1, 2, 3))
	for _, c := range []struct {
		of   *prefix.Content
		want int64
	}{{text(1, 2, 4), 128}, {text(1, 2, 3, 4), 192}, {text(2, 3), 0}, {nil, 0}} {
		if got := s.tokens(c.of); got != c.want {
			t.Errorf("%v: %d tokens, want %d", c.of, got, c.want)
		}
	}
	s.add(text(5, 6))
	if got := s.tokens(text(1, 2, 3)); got != 0 {
		t.Errorf("%d tokens of a prompt whose first block was forgotten", got)
	}
	s.add(text(7, 8))
	if got, n := s.tokens(text(7, 8)), len(s.known); got != 128 || n != 4 {
		t.Errorf("%d tokens of the newest prompt of %d blocks", got, n)
	}
}
