package patterns

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/sim/pattern"
)

// sampledRows is the number of prompt rows that are compared. They are spread over the prompt
// except its first rows, which every pattern keeps whole.
const sampledRows = 96

func rowsOf(tokens int) []int {
	rows := make([]int, sampledRows)
	from := tokens / 8
	for i := range rows {
		rows[i] = from + (tokens-1-from)*i/(sampledRows-1)
	}
	return rows
}

// Best returns the candidate whose output is nearest to dense attention's, with its error. At equal
// errors it is the first.
func Best(h *Head, space []pattern.Head) pattern.Assigned {
	masks := make([]mask, len(space))
	for i, p := range space {
		masks[i] = maskOf(h, p)
	}
	best := 0
	found := errors(h, rowsOf(h.Tokens()), masks)
	for i, e := range found {
		if e < found[best] {
			best = i
		}
	}
	return pattern.Assigned{Head: space[best], Score: found[best]}
}

// Search finds the best candidate of each head; heads are generated on demand. It returns an error
// if ctx ends first.
func Search(ctx context.Context, n int, head func(i int) (*Head, error), space []pattern.Head) (
	[]pattern.Assigned, error) {
	out := make([]pattern.Assigned, n)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			h, err := head(i)
			if err == nil {
				out[i] = Best(h, space)
			}
			return err
		})
	}
	return out, group.Wait()
}
