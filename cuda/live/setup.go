package live

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/live/queue"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim/kv"
)

func (d *Device) setUp() (err error) {
	s := d.cfg.Spec
	if err = d.cfg.supported(d.m); err != nil {
		return err
	}
	if d.stream, err = d.m.StreamCreate(true); err != nil {
		return err
	}
	d.streams = append(d.streams, d.stream)
	if d.model, err = loadModel(d.m, d.cfg.Weights); err != nil {
		return err
	}
	if d.queue, err = queue.New(d.m, &d.counters.Calls); err != nil {
		return err
	}
	d.m = d.queue
	d.clock = clock{q: d.queue, stream: d.stream}
	slab := slabOf(&d.model.Config)
	d.arena = mem.NewArena(d.m, slab)
	d.stage = mem.Staging{Machine: d.m, Stream: d.stream, Fail: d.queue.Fail}
	if d.tokens, err = d.m.HostAlloc(4*int64(s.MaxRequests), cuda.DriverPages); err != nil {
		return err
	}
	if d.offload {
		if slab < arenaSlab {
			slab = 1 // page by page
		}
		d.dram = mem.NewHostPool(d.m, d.geo.BlockBytes, d.geo.Groups(), int64(s.DRAMGiB*(1<<30)),
			slab)
		d.pages = d.dram
	}
	if err = d.attention.open(); err != nil {
		return err
	}
	if err = d.warm(); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	d.last = time.Now()
	d.returned, d.idleFrom = d.last, d.last
	return nil
}

// supported returns an error for shapes and patterns that the kernels do not support.
func (c *Config) supported(m cuda.Machine) error {
	md := c.Weights.Config()
	if md.IsLatent() {
		return c.supportsLatent(m, &md)
	}
	if err := supportsHeads(md, c.Geometry); err != nil {
		return err
	}
	return c.supportsPatterns(m)
}

// supportsHeads returns an error for shapes that the kernels of paged attention do not support.
func supportsHeads(c weights.Config, geo kv.Geometry) error {
	switch {
	case c.HeadDim != 64 && c.HeadDim != 128:
		return fmt.Errorf("live: heads of %d values; the kernels support 64 or 128", c.HeadDim)
	case c.QHeads/c.KVHeads > 8:
		return fmt.Errorf("live: %d query heads a KV head; the kernels support at most 8",
			c.QHeads/c.KVHeads)
	case geo.BlockTokens%16 != 0:
		return fmt.Errorf("live: blocks of %d tokens; the kernels support multiples of 16 "+
			"(system.block_tokens)", geo.BlockTokens)
	case geo.Layers != c.Layers || geo.KVHeads != c.KVHeads ||
		geo.BlockBytes != int64(4*geo.BlockTokens*c.HeadDim):
		return fmt.Errorf("live: weights of %d layers x %d KV heads of %d do not fit a cache of "+
			"%d x %d with blocks of %d bytes",
			c.Layers, c.KVHeads, c.HeadDim, geo.Layers, geo.KVHeads, geo.BlockBytes)
	}
	return nil
}

// Close waits for the work and frees everything.
func (d *Device) Close() error {
	var err error
	for _, stream := range d.streams {
		err = cmp.Or(err, d.m.StreamSync(stream))
	}
	if d.saver != nil {
		d.saver.close()
	}
	if d.queue != nil {
		if d.queue.Err() != nil { // reported when it happened
			err = nil
		}
		d.queue.Close()
	}
	return cmp.Or(err, d.owner.Close())
}
