package live

import (
	"context"
	"time"

	"github.com/sparseserve/sparseserve/sim/des"
)

// What passes between two calls is the server's time; the call that ends it determines which.

func (d *Device) enter(spent *time.Duration) { *spent += time.Since(d.left) }

func (d *Device) leave() { d.left = time.Now() }

func (d *Device) waited(since time.Time) { d.counters.Waiting += time.Since(since) }

// Idle waits out a gap of the server's clock between steps, as far as it has not passed already,
// and no longer than ctx lasts. What it waits belongs to no step.
func (d *Device) Idle(ctx context.Context, gap des.Time) {
	d.idleFrom = d.idleFrom.Add(time.Duration(gap))
	rest := time.Until(d.idleFrom)
	if rest <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(rest):
	}
	d.last = time.Now()
	d.leave()
}
