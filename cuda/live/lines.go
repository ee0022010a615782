package live

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// drawn are the lines of a vertical-slash head where the cost model assumes them, on both sides:
// [heads][lines] on the GPU, as many heads as a run has.
type drawn struct {
	vertical, slash     []int32
	verticalAt, slashAt cuda.Ptr
}

// drawnTokens is the context that lines are drawn for, at least.
const drawnTokens = 1 << 17

// draw uploads the lines of all runs, in contexts of up to so many tokens.
func (p *patterns) draw(m cuda.Machine, tokens int) error {
	p.drawn = map[pattern.Head]drawn{}
	for h, heads := range p.longestRuns() {
		var l drawn
		l.vertical, l.slash = h.Lines(tokens)
		var err error
		if l.verticalAt, err = uploadLines(m, l.vertical, heads); err != nil {
			return err
		}
		if l.slashAt, err = uploadLines(m, l.slash, heads); err != nil {
			return err
		}
		p.drawn[h] = l
	}
	return nil
}

// longestRuns are the most heads of each vertical-slash pattern that neighbour one another.
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

// drawnBytes is the memory of draw.
func (p *patterns) drawnBytes(tokens int) (bytes int64) {
	for h, heads := range p.longestRuns() {
		bytes += 4 * int64(heads) * int64(min(h.A, tokens)+min(h.B, tokens))
	}
	return bytes
}

// uploadLines copies lines to device memory, once a head.
func uploadLines(m cuda.Machine, lines []int32, heads int) (cuda.Ptr, error) {
	bytes := 4 * int64(heads*len(lines))
	host, err := m.HostAlloc(bytes, cuda.DriverPages)
	if err != nil {
		return 0, err
	}
	copy(cuda.Slice[int32](host), slices.Repeat(lines, heads))
	at, err := upload(m, host, bytes, bytes)
	if err != nil {
		return 0, err
	}
	return at, m.HostFree(host)
}

// below is how many ascending lines are below the context's tokens.
func below(lines []int32, tokens int) int32 {
	n, _ := slices.BinarySearch(lines, int32(tokens))
	return int32(n)
}

// impose has lines read those that are drawn in place of those that were found.
func (l *drawn) impose(lines *cuda.MILinesArgs, tokens int) {
	lines.Vertical, lines.Slash = l.verticalAt, l.slashAt
	lines.VerticalStride, lines.SlashStride = int64(len(l.vertical)), int64(len(l.slash))
	lines.VerticalCount, lines.SlashCount = below(l.vertical, tokens), below(l.slash, tokens)
}
