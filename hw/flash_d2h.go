package hw

import (
	"fmt"
	"math"
)

// ScatterThreads is the number of CPU threads that scatter saved blocks unless a system sets it:
// on the calibrated hosts more gained at most 2 %.
const ScatterThreads = 8

// flashD2H is one memcpy into a staging buffer and the CPU's scatter:
//
//	t = call + B / min(link, scatter(threads)) + min(B, chunk) / max(link, scatter(threads))
//
// The CPU scatters one chunk while the copy engine copies the next. One waits for the other at the
// begin and end of a save.
func (t *transfer) flashD2H(p *Profile, threads int) error {
	if threads == 0 {
		threads = int(math.Min(ScatterThreads, p.CPU.Cores.SI()))
	}
	if threads < 0 {
		return fmt.Errorf("scatter threads: want 1 or more, or 0 for the profile's own, got %d", threads)
	}
	var scatter curve
	for _, r := range p.Save.Scatter {
		scatter.add(float64(r.Threads), r.SI())
	}
	t.launch = p.Save.FlashCall.SI()
	t.rate, t.outside = scatter.power(float64(threads))
	if below := float64(threads) / scatter.x[0]; below < 1 {
		t.rate *= below // fewer threads scatter proportionally slower
	}
	t.chunk, t.fill = p.Save.FlashChunk.optional(), math.Max(t.link, t.rate)
	t.rate = math.Min(t.link, t.rate)
	return nil
}
