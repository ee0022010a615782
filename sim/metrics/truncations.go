package metrics

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// truncations counts the prompts that were truncated, in tokens.
type truncations struct {
	n           int
	longest     int // longest prompt before truncation
	least, most int // lengths after truncation; they differ if the limit depends on the output
}

func (c *truncations) add(given, served int) {
	if c.n == 0 {
		c.least = served
	}
	c.n++
	c.longest = max(c.longest, given)
	c.least, c.most = min(c.least, served), max(c.most, served)
}

// warning returns the warning about truncated prompts in a run of the given number of requests.
func (c *truncations) warning(requests int) warn.Warning {
	to := fmt.Sprintf("%d tokens", c.most)
	if c.least < c.most {
		to = fmt.Sprintf("between %d and %d tokens", c.least, c.most)
	}
	return warn.New(warn.Truncated, "%d of %d prompts truncated to %s (longest %d)", c.n, requests, to,
		c.longest).With(map[string]float64{"truncated": float64(c.n), "longest": float64(c.longest)})
}

// firstOf marks a reason as the first of n.
func firstOf(n int, reason string) string {
	if n > 1 {
		return "the first, " + reason
	}
	return reason
}
