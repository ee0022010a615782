package live

import (
	"context"
	"time"

	"github.com/sparseserve/sparseserve/sim/des"
)

// What passes between two calls is the server's time; the call that ends it determines which.

// enter charges it, and sets the layer of the call that begins (below 0: none). The call ends with
// the function that enter returns.
func (d *Device) enter(spent *time.Duration, layer int) (end func()) {
	*spent += time.Since(d.returned)
	d.queue.At(d.step.Index, layer)
	return d.end
}

func (d *Device) end() { d.returned = time.Now() }

func (d *Device) waited(since time.Time) { d.counters.Waiting += time.Since(since) }

// Idle waits for idle time of the server's clock between steps to pass, and no longer than ctx
// lasts. The wait belongs to no step.
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
