package live

import (
	"os"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// launchesAhead says whether the system has layers that are launched ahead of their lookup. Streams
// that share one connection to the GPU wait for a closed gate in any of them, saves too, for which
// the lookup may have to wait.
func (c *Config) launchesAhead() bool {
	s := c.Spec
	return s.Offload.On && s.Sparse() && !s.GPULookup() && !s.Progressive() &&
		s.Offload.Load == "flash" &&
		c.Projected == nil && len(c.Patterns) == 0 && manyConnections()
}

// manyConnections says whether there are as many as the driver makes unless it is told otherwise.
func manyConnections() bool {
	const usual = 8
	text := strings.TrimSpace(os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS"))
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && n >= usual
}

// listBlocks are the most blocks that a decode's list can have of a context of so many: one
// candidate at least, whatever the budget.
func (c *Config) listBlocks(longest int) int {
	return min(c.Spec.Selection.SinkBlocks+c.Spec.Selection.RecentBlocks+sim.Candidates(c.Spec),
		longest)
}

// sizeAhead gives addresses of a layer's loads their memory: of the step's decodes, as far as lists
// go, and of all that its prefills attend to.
func (d *Device) sizeAhead(s *sim.Step) {
	if d.ahead.loaded == nil {
		return
	}
	blocks, decodes, longest := 0, 0, 0
	for i := range s.Rows {
		row := &s.Rows[i]
		if n := d.geo.Blocks(row.To); row.Decode {
			decodes, longest = decodes+1, max(longest, n)
		} else {
			blocks += n
		}
	}
	if decodes == 0 {
		return
	}
	a := &d.ahead
	blocks += decodes * d.cfg.listBlocks(longest)
	d.grow(&a.counted, 8, "loads counted")
	grew, err := a.hold(d.m, d.geo.KVHeads*blocks)
	if d.queue.Fail(err); grew {
		d.grown++
	}
	d.grow(&a.addresses, int64(16*len(a.src)), "addresses of loads")
}

// hold allocates pinned memory for the addresses of so many loads and their slots, and says whether
// it did. The GPU is idle.
func (a *ahead) hold(m cuda.Machine, loads int) (grew bool, err error) {
	if len(a.src) >= loads {
		return false, nil
	}
	if len(a.src) > 0 {
		if err := m.HostFree(a.loads); err != nil {
			return false, err
		}
		a.src, a.dst = nil, nil
	}
	bytes := mem.WithSpare(int64(16 * loads)) // both rows begin at multiples of 16 bytes
	if a.loads, err = m.HostAlloc(bytes, cuda.DriverPages); err != nil {
		return false, err
	}
	all := cuda.Slice[int64](a.loads)
	a.src, a.dst = all[:bytes/16], all[bytes/16:bytes/8]
	return true, nil
}

// aheadBytes is the most that addresses of a layer's loads need in pinned memory, where layers are
// launched ahead of their lookup: of decodes' lists, and of prefills' whole contexts.
func (c *Config) aheadBytes(l *Load) int64 {
	if !c.launchesAhead() || len(l.Requests) == 0 {
		return 0
	}
	geo, n := &c.Geometry, min(c.Spec.MaxRequests, len(l.Requests))
	blocks := l.tokens(n)/geo.BlockTokens + n +
		n*c.listBlocks(max(geo.Blocks(l.Requests[0]),
			c.Spec.Selection.BudgetTokens/c.Spec.BlockTokens+1))
	return mem.WithSpare(int64(16 * geo.KVHeads * blocks))
}
