package pattern

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// mergeSteps counts the steps in which one row of 64 queries that ends at end merges its slash
// lines, ascending, to blocks, and the lines that it meets: the loop of cuda/mi_lines.cu.
func mergeSteps(slash []int, end int) (steps, lines int) {
	at := sort.SearchInts(slash, end) - 1
	if at < 0 {
		return 0, 0
	}
	lines = at + 1
	ends := func(i int) int { return max(end-slash[i], BlockTokens) }
	stop := ends(at)
	covered := func(more int) bool { return at >= more && ends(at-more) <= stop }
	for at--; at >= 0; steps++ {
		switch next := ends(at); {
		case next > stop+BlockTokens:
			stop = next
			at--
		case next > stop:
			stop += BlockTokens
			at--
		case covered(63):
			at -= 64
		case covered(15):
			at -= 16
		case covered(3):
			at -= 4
		default:
			at--
		}
	}
	return steps, lines
}

// slashRuns draws lines in runs, evenly over the diagonals of a prompt.
func slashRuns(r *rand.Rand, tokens, lines, run int) (list []int) {
	for at, left := 0, lines; left > 0; {
		some := min(run, left)
		part := (tokens - at) * some / left
		at += r.IntN(part - some + 1)
		for i := range some {
			list = append(list, at+i)
		}
		at, left = at+some, left-some
	}
	return list
}

func TestSlashLinesPassedAtATime(t *testing.T) {
	const run = 70 // diagonals
	r := rand.New(rand.NewPCG(1, 2))
	for _, tokens := range []int{8192, 32768, 131072} {
		for _, lines := range []int{700, 2100, 6096} {
			if 2*lines > tokens {
				continue // runs have no gap between them, and steps are longer
			}
			steps, passedLines := 0, 0
			slash := slashRuns(r, tokens, lines, run)
			for end := BlockTokens; end <= tokens; end += BlockTokens {
				s, l := mergeSteps(slash, end)
				steps, passedLines = steps+s, passedLines+l
			}
			got := float64(passedLines) / float64(steps)
			t.Logf("%d lines of %d tokens: %.2f a step", lines, tokens, got)
			if math.Abs(got/passed-1) > 0.15 {
				t.Errorf("%d lines of %d tokens: %.2f a step, want %g", lines, tokens, got, passed)
			}
		}
	}
}
