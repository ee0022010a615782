package calibrate

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// liveReserve is the device memory of a server without weights, KV and its metadata: activations,
// save buffer, and fragments of slabs.
const liveReserve = 4 * gib

// holds checks that the device has memory for a server in addition to the bench's own buffers.
func (g *gpuBench) holds(c *liveCase) error {
	need, err := c.deviceBytes()
	if err != nil {
		return err
	}
	if free := g.info.MemoryBytes - g.info.MemoryBusyBytes - g.slabBytes; free < need {
		return fmt.Errorf("%w: %s of device memory besides the buffers, %d requests in %d layers need %s",
			ErrSkip, size(free), c.requests, c.model.Layers, size(need))
	}
	return nil
}

// prepareLive prepares decode steps of a server. A sample is the host's part of a step, which the
// GPU's events do not cover: the median of several consecutive steps (run). One server provides the
// samples of several calls.
func (g *gpuBench) prepareLive(c *liveCase) (Timed, error) {
	if err := g.holds(c); err != nil {
		return nil, err
	}
	var ready []float64
	return func(warmup, repeats int) ([]float64, error) {
		if len(ready) < repeats {
			err := g.onMachine(func(m live.Machine) (err error) {
				ready, err = c.samples(m, warmup, max(repeats, liveSamples))
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		samples := ready[:repeats]
		ready = ready[repeats:]
		return samples, nil
	}, nil
}

// serving serves a point with the server that caseOf describes.
func serving(caseOf func(Point) (*liveCase, error)) func(*gpuBench, Point) (Timed, error) {
	return func(g *gpuBench, p Point) (Timed, error) {
		c, err := caseOf(p)
		if err != nil {
			return nil, err
		}
		return g.prepareLive(c)
	}
}

// onMachine calls f with a machine that allocates host memory from the pool.
func (g *gpuBench) onMachine(f func(live.Machine) error) error {
	return g.do(func(g *gpuRun) {
		g.host(gib)
		g.try(func() error { return f(&pooled{Machine: g.s, pool: &g.pool, each: gib}) })
	})
}

// pooled is a machine with its KV pages in the bench's pool, because pinning takes most of a second
// per GiB. Pages beyond the pool's size share its memory: the host's time does not depend on the
// contents of a block.
type pooled struct {
	live.Machine
	pool *hostPool
	each int64 // bytes lent at a time, of which each segment of the pool has a whole number
	lent int64 // times so far
}

// HostAlloc implements live.Machine.
func (m *pooled) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	if pages != cuda.HugePages || bytes > m.each {
		return m.Machine.HostAlloc(bytes, pages)
	}
	_, b := m.pool.at(m.lent * m.each % m.pool.bytes)
	m.lent++
	return cuda.HostMemoryOf(b[:bytes]), nil
}

// HostFree implements live.Machine.
func (m *pooled) HostFree(memory cuda.HostMemory) error {
	if m.pool.has(memory.Ptr()) {
		return nil
	}
	return m.Machine.HostFree(memory)
}

// samples serves a warm-up and returns the given number of samples after it.
func (c liveCase) samples(m live.Machine, warmup, repeats int) (samples []float64, err error) {
	n := c.run()
	c.steps = (warmup + repeats) * n
	steps, err := c.hostSeconds(m)
	if err != nil {
		return nil, err
	}
	for run := range slices.Chunk(steps[warmup*n:], n) {
		samples = append(samples, medianOf(run).Value)
	}
	return samples, nil
}

// deviceBytes returns the device memory that a server needs.
func (c liveCase) deviceBytes() (int64, error) {
	source, err := c.source()
	if err != nil {
		return 0, err
	}
	c.steps = 8 * liveRun
	cfg := c.server()
	weights := source.Config()
	return weights.Bytes() + cfg.HBMBytes +
		c.blocks(&cfg.Geometry)*int64(cfg.Geometry.Groups())*cfg.Geometry.MetaBytes + liveReserve, nil
}
