package patterns

import (
	"fmt"
	"sort"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Sizes of Table 6 and the prompt of its search (App. C.2). The target is the cost of the A-shape
// head. Its sizes, and the sizes that the other kinds keep, scale with the prompt.
const tableTokens = 30_000

var (
	targetHead = pattern.Head{Kind: pattern.AShape, A: 1024, B: 4096}
	verticals  = []int{30, 100, 500, 3000}
)

// scaled returns a size of Table 6 for a prompt, rounded to steps.
func scaled(size, tokens, step int) int {
	n := (size*tokens + tableTokens/2) / tableTokens
	return max(step, (n+step/2)/step*step)
}

// Space lists the candidates for prompts of n tokens: the A-shape target, vertical-slash with each
// number of vertical lines and as many slash lines as the target's kernel time allows, and
// block-sparse with as many blocks as it allows (Algorithm 1's ChangeSpace).
func Space(p *hw.Profile, m *llm.Model, tokens int) ([]pattern.Head, error) {
	if tokens < 8*pattern.BlockTokens {
		return nil, fmt.Errorf("prompts of %d tokens: want at least %d, eight blocks",
			tokens, 8*pattern.BlockTokens)
	}
	target := targetHead
	target.A = scaled(target.A, tokens, pattern.BlockTokens)
	target.B = scaled(target.B, tokens, pattern.BlockTokens)
	limit := Cost(p, m, target, tokens)
	space := []pattern.Head{target}
	for _, v := range verticals {
		h := pattern.Head{Kind: pattern.VerticalSlash, A: scaled(v, tokens, 1)}
		h.B = most(tokens, func(n int) bool { h.B = n; return Cost(p, m, h, tokens) <= limit })
		if h.B > 0 {
			space = append(space, h)
		}
	}
	h := pattern.Head{Kind: pattern.BlockSparse}
	h.A = most(tokens/pattern.BlockTokens, func(n int) bool {
		h.A = n
		return Cost(p, m, h, tokens) <= limit
	})
	if h.A > 0 {
		space = append(space, h)
	}
	return space, nil
}

// most returns the largest n up to a limit that fits; 0 if none fits. fits must be monotonic.
func most(limit int, fits func(n int) bool) int {
	return sort.Search(limit, func(n int) bool { return !fits(n + 1) })
}

// Cost returns the kernel time of one head's attention to a prompt, in s, without launches and
// index, which Algorithm 1 excludes.
func Cost(p *hw.Profile, m *llm.Model, h pattern.Head, tokens int) float64 {
	one := *m
	one.QHeads, one.KVHeads = 1, 1
	span := sim.Span{Query: tokens}
	all, _ := cost.PrefillSeconds(p, &one, []pattern.Group{{Head: h, Heads: 1}}, span, 0)
	launch, _ := cost.PrefillSeconds(p, &one, []pattern.Group{{Head: h}}, span, 0)
	return all - launch
}
