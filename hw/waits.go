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
	load   float64 // the same of a load with a memcpy a block
	copy   float64 // that a save's call takes longer beside such loads
	turn   float64 // that the selection's copy and the wait for it take longer beside saves
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
	w := waits{call: p.Host.CallWait.optional(), load: p.Host.LoadWait.optional(), copy: p.Host.CopyWait.optional(), blocks: opts.LoadEngine == LoadMemcpy}
	if !p.Host.LoadWait.Set() {
		w.load = w.call
	}
	if w.turn = p.Host.TurnWait.optional(); !p.Host.TurnWait.Set() {
		w.turn = w.call
	}
	return w
}

// calls returns what the first thread waits for in so many calls, which is not
// longer than the queue of saves lasts.
func (w *waits) calls(n float64, q *saveQueue) des.Time {
	return whileSaving(n*w.call, q)
}

// roundTrip returns what a layer's takes longer while saves last: the selection's copy,
// for which the CPU waits, and the other calls that the GPU waits for.
func (w *waits) roundTrip(q *saveQueue) des.Time {
	return whileSaving(w.turn+(syncCalls-1)*w.call, q)
}

// whileSaving is what waits of so many seconds in all come to: no more than saves last.
func whileSaving(seconds float64, q *saveQueue) des.Time { return min(nanoseconds(seconds), q.work) }

// loads returns what loads of n blocks, that take a time alone, take longer for
// the saves beside them, and makes these take longer too. Each load takes its time alone
// + load and each save its time alone + copy for as long as both last.
func (w *waits) loads(n, blockBytes int64, alone des.Time, q *saveQueue) des.Time {
	if w.load+w.call+w.copy == 0 || q.work == 0 || alone == 0 {
		return 0
	}
	if !w.blocks {
		return w.calls(1, q)
	}
	next := min(alone, q.work)
	saves := q.bytesOf(next) / float64(blockBytes)
	if saves == 0 {
		return 0
	}
	eachLoad, eachSave := alone.Seconds()/float64(n)+w.load, next.Seconds()/saves+w.copy
	left := q.bytes / float64(blockBytes)
	q.hold(nanoseconds(math.Min(left, math.Floor(float64(n)*eachLoad/eachSave)) * w.copy))
	return nanoseconds(math.Min(float64(n), left*eachSave/eachLoad) * w.load)
}
