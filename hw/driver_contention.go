package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// waits is contention for the driver: the serving loop's calls, and those of its second
// thread that saves with a memcpy a block, queue for the driver's lock, one call of the
// other thread at a time. The zero value costs nothing.
type driverContention struct {
	call   float64 // seconds by which a call is longer during the other thread's
	blocks bool    // loads make a call a block, not one for all
}

// Calls of the driver in a layer of the live loop, by its own count (live.Counters.Calls): in all,
// and of them what a layer with offloading makes while the GPU has nothing to do: the selection's
// copy, the upload of lists and the first kernel after it.
const (
	layerCalls = 15
	syncCalls  = 3
)

func newDriverContention(p *Profile, opts *DeviceOptions) driverContention {
	if opts.SaveEngine != SaveMemcpy {
		return driverContention{} // that thread calls once a batch
	}
	return driverContention{call: p.Host.DriverContention.optional(),
		blocks: opts.LoadEngine == LoadMemcpy}
}

// calls returns what the first thread waits for in so many calls, which is not
// longer than the queue of saves lasts.
func (w *driverContention) calls(n float64, q *saveQueue) des.Time {
	return min(nanoseconds(n*w.call), q.work)
}

// loads returns by how much loads of n blocks, of a time without saves, are longer for
// saves that overlap with them. Loads with a memcpy a block make the saves longer instead:
// each save its own time + call for as long as both last.
func (w *driverContention) loads(n, blockBytes int64, unshared des.Time, q *saveQueue) des.Time {
	if w.call == 0 || q.work == 0 || unshared == 0 {
		return 0
	}
	if !w.blocks {
		return w.calls(1, q)
	}
	next := min(unshared, q.work)
	saves := q.bytesOf(next) / float64(blockBytes)
	if saves == 0 {
		return 0
	}
	eachSave, left := next.Seconds()/saves+w.call, q.bytes/float64(blockBytes)
	q.hold(nanoseconds(math.Min(left, math.Floor(unshared.Seconds()/eachSave)) * w.call))
	return 0
}
