package live

import (
	"context"
	"time"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Time between two calls is the server's; the call that ends it determines its counter.

// enter adds this time to spent, and sets the layer of the call (below 0: none). The returned
// function ends the call.
func (d *Device) enter(spent *time.Duration, layer int) (end func()) {
	*spent += time.Since(d.returned)
	d.queue.At(d.step.Index, layer)
	return d.end
}

func (d *Device) end() { d.returned = time.Now() }

func (d *Device) waited(since time.Time) { d.counters.Waiting += time.Since(since) }

// Idle waits until idle time of the server's clock between steps has passed, or ctx is done. The
// wait belongs to no step.
func (d *Device) Idle(ctx context.Context, idle des.Time) {
	d.idleFrom = d.idleFrom.Add(time.Duration(idle))
	rest := time.Until(d.idleFrom)
	if rest <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(rest):
	}
	d.last = time.Now()
	d.end()
}
