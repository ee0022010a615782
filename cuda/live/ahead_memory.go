package live

import (
	"os"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// launchesAhead reports whether the system launches layers ahead of their lookup. It needs many
// connections to the GPU: with a shared connection, other streams would wait for a closed gate.
// This includes saves, for which the lookup may have to wait.
func (c *Config) launchesAhead() bool {
	s := c.Spec
	return s.Offload.On && s.Sparse() && !s.GPULookup() && !s.Progressive() &&
		s.Offload.Load == "flash" &&
		c.Projected == nil && len(c.Patterns) == 0 && manyConnections()
}

// manyConnections reports whether there are at least as many connections as the driver's default.
func manyConnections() bool {
	const usual = 8
	text := strings.TrimSpace(os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS"))
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && n >= usual
}

// listBlocks returns the maximum number of blocks in a decode's list in a context of longest
// blocks. The list has at least one candidate, whatever the budget.
func (c *Config) listBlocks(longest int) int {
	return min(c.Spec.Selection.SinkBlocks+c.Spec.Selection.RecentBlocks+sim.Candidates(c.Spec),
		longest)
}

// sizeAhead allocates memory for the addresses of a layer's loads: the lists of the step's decodes,
// and the whole contexts of its prefills.
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

// hold allocates pinned memory for the addresses of the given number of loads and of their slots.
// It reports whether it allocated. The GPU is idle.
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

// aheadBytes returns the maximum pinned memory for the addresses of a layer's loads if layers are
// launched ahead of their lookup: decodes' lists, and prefills' whole contexts.
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
