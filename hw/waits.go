package hw

import (
	"math"

	"sparseserve/sim/des"
)

// waits is what the serving loop's calls of the driver cost while its second
// thread saves with a memcpy a block: calls of both threads queue for the
// driver's lock, one call of the other thread at a time. The zero value costs
// nothing.
type waits struct {
	call   float64 // seconds that a call of the first thread takes longer beside saves
	copy   float64 // that a save's call takes longer beside loads with a memcpy a block
	blocks bool    // loads make a call a block, not one for all
}

// Calls of the driver in a layer of the live loop, by its own count
// (live.Counters.Calls): in all, and of them what a layer with offloading makes
// while the GPU has nothing to do: the selection's copy, the upload of lists and
// the first kernel after it.
const (
	layerCalls = 15
	syncCalls  = 3
)

func newWaits(p *Profile, opts *DeviceOptions) waits {
	if opts.SaveEngine != SaveMemcpy {
		return waits{} // a thread that makes few calls
	}
	return waits{call: p.Host.CallWait.optional(), copy: p.Host.CopyWait.optional(), blocks: opts.LoadEngine == LoadMemcpy}
}

// calls returns what the first thread waits for in so many calls, which is not
// longer than the queue of saves lasts.
func (w *waits) calls(n float64, q *saveQueue) des.Time {
	if w.call == 0 || q.work == 0 {
		return 0
	}
	return min(nanoseconds(n*w.call), q.work)
}

// loads returns what loads of n blocks, that take a time alone, take longer for
// the saves beside them, and makes these take longer too.
func (w *waits) loads(n, blockBytes int64, alone des.Time, q *saveQueue) des.Time {
	if w.call == 0 || q.work == 0 || alone == 0 {
		return 0
	}
	if !w.blocks {
		return w.calls(1, q)
	}
	both := min(alone, q.work)
	t := w.calls(float64(n)*float64(both)/float64(alone), q)
	q.hold(nanoseconds(math.Floor(q.bytesOf(both)/float64(blockBytes)) * w.copy))
	return t
}
