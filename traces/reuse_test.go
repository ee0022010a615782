package traces

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// The prefix cache shares of a description, compared with a replay: an unbounded set of all
// prefixes, and no capacity has more than a larger one.
func TestDescribeCountsReuse(t *testing.T) {
	const block = 16
	kv := KV{Model: "m", TokenBytes: 1 << 20, BlockTokens: block}
	for _, file := range []string{"testdata/mooncake.jsonl", "testdata/contents.csv",
		"testdata/sharegpt.json"} {
		d, err := Describe(t.Context(), file, "", kv)
		if err != nil || d.Prefix == nil {
			t.Fatalf("%s: %+v, %v", file, d, err)
		}
		src, _, err := openTrace(file, wholeFile(""))
		if err != nil {
			t.Fatal(err)
		}
		requests, err := readAll(src)
		if err != nil {
			t.Fatal(err)
		}
		seen, want, prompts := map[uint64]bool{}, int64(0), int64(0)
		for _, a := range requests {
			prompts += int64(a.Prompt)
			if a.Content == nil {
				continue
			}
			chain := prefix.NewChain(a.Content.Prompt)
			shared := true
			for n := block; n <= a.Prompt; n += block {
				key, known := chain.Key(n)
				if !known {
					break
				}
				if shared = shared && seen[key]; shared && n < a.Prompt {
					want += block
				}
			}
			pieces := append(append([]prefix.Piece{}, a.Content.Prompt...),
				prefix.Piece{ID: a.Content.Answer, Tokens: a.Output - 1})
			if a.Content.Answer == 0 {
				pieces = a.Content.Prompt
			}
			chain = prefix.NewChain(pieces)
			for n := block; ; n += block {
				key, known := chain.Key(n)
				if !known {
					break
				}
				seen[key] = true
			}
		}
		r := d.Prefix
		if r.Unbounded.Tokens != want || r.PromptTokens != prompts {
			t.Errorf("%s: %d tokens of %d, want %d of %d", file, r.Unbounded.Tokens, r.PromptTokens, want,
				prompts)
		}
		last := 0.0
		for i, share := range r.Curve[1] {
			if share < last || i > 0 && r.Curve[0][i] < r.Curve[0][i-1] {
				t.Errorf("%s: the curve falls at %d: %v", file, i, r.Curve)
			}
			last = share
		}
		if math.Abs(last-r.Unbounded.Share) > 1e-12 {
			t.Errorf("%s: the curve ends at %g, without bound it is %g", file, last, r.Unbounded.Share)
		}
	}
	if d, err := Describe(t.Context(), "testdata/own.csv", "", kv); err != nil || d.Prefix != nil {
		t.Errorf("of no content: %+v, %v", d.Prefix, err)
	}
}

// Sessions of a workload share what their turns repeat.
func TestDescribeSessions(t *testing.T) {
	s := DefaultSpec()
	ofSessions(&s)
	s.Requests, s.Turns, s.SystemPrompts = 400, "fixed(4)", 1
	kv := KV{Model: "m", TokenBytes: 1 << 17, BlockTokens: 16}
	d, err := DescribeWorkload(t.Context(), "w", s, 1, kv)
	if err != nil || d.Requests != 400 || d.Prefix == nil || d.Prefix.Unbounded.Share < 0.5 {
		t.Errorf("%+v, %v", d, err)
	}
}
