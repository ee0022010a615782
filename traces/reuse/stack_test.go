package reuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// served is a request.
type served struct {
	content        *prefix.Content
	prompt, output int
}

// made makes requests that share texts, sessions among them, some of unknown content.
func made(rng *rand.Rand, n int) (all []served) {
	for range n {
		if len(all) > 0 && rng.IntN(2) == 0 { // the next turn of one before
			if last := all[rng.IntN(len(all))]; last.content != nil && last.content.Answer != 0 {
				pieces := append(slices.Clone(last.content.Prompt),
					prefix.Piece{ID: last.content.Answer, Tokens: last.output},
					prefix.Piece{ID: rng.Uint64N(3), Tokens: 1 + rng.IntN(9)})
				all = append(all, turn(pieces, rng))
				continue
			}
		}
		if rng.IntN(10) == 0 {
			all = append(all, served{nil, 1 + rng.IntN(30), 1 + rng.IntN(9)})
			continue
		}
		var pieces []prefix.Piece
		for range rng.IntN(4) {
			pieces = append(pieces, prefix.Piece{ID: rng.Uint64N(3), Tokens: rng.IntN(12)})
		}
		all = append(all, turn(pieces, rng))
	}
	return all
}

// turn is a request of a content that may end early, or go on beyond the prompt.
func turn(pieces []prefix.Piece, rng *rand.Rand) served {
	s := served{content: &prefix.Content{Prompt: pieces}, output: 1 + rng.IntN(9)}
	for _, p := range pieces {
		s.prompt += p.Tokens
	}
	s.prompt = max(1, s.prompt+max(-3, rng.IntN(12)-9))
	if rng.IntN(2) == 0 {
		s.content.Answer = 100 + rng.Uint64N(50)
	}
	return s
}

// keys names the full blocks of a request's prompt and output but its last token.
func (s served) keys(number, block int) (keys []uint64) {
	var pieces []prefix.Piece
	if s.content != nil {
		known := 0
		for _, p := range s.content.Prompt {
			if n := min(p.Tokens, s.prompt-known); n > 0 {
				pieces = append(pieces, prefix.Piece{ID: p.ID, Tokens: n})
				known += n
			}
		}
		if known == s.prompt && s.content.Answer != 0 {
			pieces = append(pieces, prefix.Piece{ID: s.content.Answer, Tokens: s.output})
		}
	}
	chain := prefix.NewChain(pieces)
	for n := block; n <= s.prompt+s.output-1; n += block {
		key, ok := chain.Key(n)
		if !ok {
			key = uint64(1+number)<<40 + uint64(n) // like no other
		}
		keys = append(keys, key)
	}
	return keys
}

// TestLawUnboundedReplay: what a cache without bound hits is what a set of all prefixes has.
func TestLawUnboundedReplay(t *testing.T) {
	for _, block := range []int{1, 4, 16} {
		for seed := range uint64(30) {
			all, s, seen := made(rand.New(rand.NewPCG(seed, 1)), 200), NewStack(block), map[uint64]bool{}
			for i, r := range all {
				want := 0
				for j, key := range r.keys(i, block) {
					if !seen[key] || (j+1)*block > r.prompt-1 {
						break
					}
					want = (j + 1) * block
				}
				if got := s.Serve(r.content, r.prompt, r.output); got != want {
					t.Fatalf("blocks of %d, seed %d, request %d: %d tokens, want %d", block, seed, i, got, want)
				}
				for _, key := range r.keys(i, block) {
					seen[key] = true
				}
			}
			if got := s.Blocks(); got != int64(len(seen)) {
				t.Fatalf("blocks of %d, seed %d: %d blocks, want %d", block, seed, got, len(seen))
			}
		}
	}
}

// TestStackAgainstLists holds every capacity against an LRU list of it.
func TestStackAgainstLists(t *testing.T) {
	const block = 4
	all := made(rand.New(rand.NewPCG(7, 1)), 300)
	s, prompts := NewStack(block), 0
	for _, r := range all {
		s.Serve(r.content, r.prompt, r.output)
		prompts += r.prompt
	}
	if s.Prompt() != int64(prompts) {
		t.Errorf("%d tokens of prompts, want %d", s.Prompt(), prompts)
	}
	for capacity := range int(s.Blocks()) + 2 {
		var list []uint64 // latest first
		want := int64(0)
		for i, r := range all {
			keys := r.keys(i, block)
			for j, key := range keys {
				if (j+1)*block > r.prompt-1 || !slices.Contains(list, key) {
					break
				}
				want += block
			}
			list = slices.DeleteFunc(list, func(k uint64) bool { return slices.Contains(keys, k) })
			list = append(slices.Clone(keys), list...)
			list = list[:min(len(list), capacity)]
		}
		if got := s.Hits(int64(capacity)); got != want {
			t.Fatalf("%d blocks: %d tokens, want %d", capacity, got, want)
		}
	}
}

// BenchmarkStack serves as many requests as Mooncake's conversation trace has, of pieces of its
// size, half of them shared.
func BenchmarkStack(b *testing.B) {
	for b.Loop() {
		s := NewStack(16)
		for i := range 12_031 {
			c := &prefix.Content{}
			for j := range 24 {
				id := uint64(1 + i*24 + j)
				if j < 12 {
					id = uint64(1 + i%1000*24 + j)
				}
				c.Prompt = append(c.Prompt, prefix.Piece{ID: id, Tokens: 512})
			}
			s.Serve(c, 24*512, 343)
		}
	}
}

// TestSampledStack holds a stack that keeps few runs against one that keeps all: it stays within
// its bound, and its hits within 2 % of all prompt tokens.
func TestSampledStack(t *testing.T) {
	const block = 4
	rng := rand.New(rand.NewPCG(3, 1))
	exact, sampled := NewStack(block), NewStack(block)
	sampled.most = 16_000
	popular := rand.NewZipf(rng, 1.1, 1, 20_000)
	for range 30_000 {
		c, prompt := &prefix.Content{}, 0
		for i, first := uint64(0), popular.Uint64(); i < 1+first%7; i++ {
			p := prefix.Piece{ID: first<<8 + i, Tokens: 8 + int(first%30)}
			c.Prompt, prompt = append(c.Prompt, p), prompt+p.Tokens
		}
		exact.Serve(c, prompt, 9)
		sampled.Serve(c, prompt, 9)
		if n := len(sampled.runs) - len(sampled.free); n > sampled.most {
			t.Fatalf("%d runs, at most %d", n, sampled.most)
		}
	}
	if exact.Sampled() != 1 || sampled.Sampled() != 1.0/4 {
		t.Errorf("samples of %g and %g", exact.Sampled(), sampled.Sampled())
	}
	hits := int64(0)
	for capacity := int64(4096); capacity < exact.Blocks(); capacity *= 2 {
		got, want := sampled.Hits(capacity), exact.Hits(capacity)
		if d := got - want; max(d, -d) > exact.Prompt()/50 {
			t.Errorf("%d blocks: %d tokens, want %d", capacity, got, want)
		}
		hits += want
	}
	if hits < exact.Prompt() {
		t.Errorf("%d tokens are hit: nothing to compare", hits)
	}
	if got, want := float64(sampled.Blocks()), float64(exact.Blocks()); math.Abs(got/want-1) > 0.03 {
		t.Errorf("%g blocks, want %g", got, want)
	}
}

// TestRoundedHits: hits that are rounded move by at most 1 part in 2,048 of their capacity.
func TestRoundedHits(t *testing.T) {
	exact, rounded := NewStack(4), NewStack(4)
	for _, r := range made(rand.New(rand.NewPCG(5, 1)), 2000) {
		exact.Serve(r.content, r.prompt, r.output)
		rounded.Serve(r.content, r.prompt, r.output)
		rounded.round()
	}
	all := exact.Blocks()
	if got, want := rounded.Hits(all+all/2048+1), exact.Hits(all); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	for capacity := int64(1); capacity < all; capacity *= 2 {
		if got, most := rounded.Hits(capacity), exact.Hits(capacity); got > most {
			t.Errorf("%d blocks: %d tokens, at most %d", capacity, got, most)
		}
	}
}

func ExampleStack() {
	s := NewStack(16)
	system := prefix.Piece{ID: 1, Tokens: 100}
	s.Serve(&prefix.Content{Prompt: []prefix.Piece{system, {ID: 2, Tokens: 40}}, Answer: 3}, 140, 60)
	s.Serve(&prefix.Content{Prompt: []prefix.Piece{system, {ID: 4, Tokens: 40}}}, 140, 60)
	next := []prefix.Piece{system, {ID: 2, Tokens: 40}, {ID: 3, Tokens: 60}, {ID: 5, Tokens: 20}}
	fmt.Println(s.Serve(&prefix.Content{Prompt: next}, 220, 60), "of 220 tokens")
	fmt.Println(s.Hits(12), "of", s.Prompt(), "tokens with 12 blocks,", s.Hits(s.Blocks()), "with",
		s.Blocks())
	// Output:
	// 192 of 220 tokens
	// 192 of 500 tokens with 12 blocks, 288 with 23
}

// TestLongSession serves one session of thousands of turns. A turn finds all before it, as one hit,
// and what Optimum would go over, n^2 parts, is not kept.
func TestLongSession(t *testing.T) {
	const turns, tokens = 2400, 8
	s := NewStack(tokens)
	s.Remember = true
	var pieces []prefix.Piece
	for i := range uint64(turns) {
		pieces = append(pieces, prefix.Piece{ID: 2*i + 1, Tokens: tokens})
		n := len(pieces)
		got := s.Serve(&prefix.Content{Prompt: pieces[:n:n], Answer: 2*i + 2}, n*tokens, tokens)
		if want := max(0, n-2) * tokens; got != want { // an answer's last token is not computed
			t.Fatalf("turn %d has %d tokens, want %d", i, got, want)
		}
		pieces = append(pieces, prefix.Piece{ID: 2*i + 2, Tokens: tokens})
		if i == turns/4 && (!s.Remembers() || s.Optimum(1 << 30)[0] != s.Hits(1<<30)) {
			t.Errorf("after %d turns an unbounded cache misses what it could have", i)
		}
	}
	if len(s.hits) > turns {
		t.Errorf("%d hits of %d turns", len(s.hits), turns)
	}
	if s.Remembers() || s.Optimum(1) != nil || s.requests != nil {
		t.Errorf("%d requests are kept, of %d uses", len(s.requests), s.uses)
	}
}

// A sample has no optimum, which needs all pieces.
func TestSampleHasNoOptimum(t *testing.T) {
	s := NewStack(8)
	s.Remember, s.most = true, 100
	for i := range uint64(200) {
		s.Serve(&prefix.Content{Prompt: []prefix.Piece{{ID: i, Tokens: 16}}, Answer: 1000 + i}, 16, 16)
	}
	if s.Sampled() == 1 || s.Remembers() || s.Optimum(10) != nil {
		t.Errorf("1 in %g is sampled, and remembered: %v", 1/s.Sampled(), s.Remembers())
	}
}
