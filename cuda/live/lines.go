package live

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// drawn are the lines of a vertical-slash head that the cost model assumes, on the host and on the
// GPU. On the GPU they are repeated for each head of a run: [heads][lines].
type drawn struct {
	vertical, slash     []int32
	verticalAt, slashAt cuda.Ptr
}

// drawnTokens is the minimum context for which lines are drawn.
const drawnTokens = 1 << 17

// draw uploads the lines of all runs, for contexts of up to the given tokens.
func (p *patterns) draw(m cuda.Machine, tokens int) error {
	p.drawn = map[pattern.Head]drawn{}
	for h, heads := range p.longestRuns() {
		var l drawn
		l.vertical, l.slash = h.Lines(tokens)
		var err error
		if l.verticalAt, err = uploaded(m, slices.Repeat(l.vertical, heads)); err != nil {
			return err
		}
		if l.slashAt, err = uploaded(m, slices.Repeat(l.slash, heads)); err != nil {
			return err
		}
		p.drawn[h] = l
	}
	return nil
}

// longestRuns returns, for each vertical-slash pattern, the maximum number of adjacent heads.
func (p *patterns) longestRuns() map[pattern.Head]int {
	longest := map[pattern.Head]int{}
	for _, sections := range p.layers {
		for _, s := range sections {
			for _, r := range s.runs {
				if r.Kind == pattern.VerticalSlash {
					longest[r.Head] = max(longest[r.Head], r.to-r.from)
				}
			}
		}
	}
	return longest
}

// drawnBytes returns the device memory of draw.
func (p *patterns) drawnBytes(tokens int) (bytes int64) {
	for h, heads := range p.longestRuns() {
		bytes += 4 * int64(heads) * int64(min(h.A, tokens)+min(h.B, tokens))
	}
	return bytes
}

// below returns the number of ascending lines that are smaller than tokens.
func below(lines []int32, tokens int) int32 {
	n, _ := slices.BinarySearch(lines, int32(tokens))
	return int32(n)
}

// impose replaces the lines found by the drawn lines.
func (l *drawn) impose(lines *cuda.MILinesArgs, tokens int) {
	lines.Vertical, lines.Slash = l.verticalAt, l.slashAt
	lines.VerticalStride, lines.SlashStride = int64(len(l.vertical)), int64(len(l.slash))
	lines.VerticalCount, lines.SlashCount = below(l.vertical, tokens), below(l.slash, tokens)
}
