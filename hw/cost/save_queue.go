package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// saveQueue is the HBM->DRAM link: a FIFO of saves that drains over time and across steps. Work is
// the time of a save on an otherwise idle link.
type saveQueue struct {
	at       des.Time // virtual time up to which the queue has been drained
	lastDone des.Time // when the queue last ran empty
	work     des.Time // remaining, over all entries
	bytes    float64  // remaining, over all entries
	drained  float64  // bytes that have reached DRAM, for checks
	busy     des.Time // since the end of the last step
	ring     []save
	head, n  int
}

type save struct {
	bytes float64  // remaining
	work  des.Time // remaining
}

// advance drains the queue until the given time at full speed.
func (q *saveQueue) advance(to des.Time) {
	if q.n == 0 {
		q.at = max(q.at, to)
	} else if to > q.at {
		q.drain(to-q.at, to-q.at)
	}
}

// drain passes elapsed time, in which the link does at most the given work. work must not exceed
// elapsed.
func (q *saveQueue) drain(elapsed, work des.Time) {
	end := q.at + elapsed
	if q.n > 0 && work < q.work {
		q.busy += elapsed
	}
	if q.n > 0 && work >= q.work {
		// The queue runs empty; a slowed link does its work evenly over the interval.
		q.lastDone = q.at + des.Time(math.Ceil(float64(elapsed)*float64(q.work)/float64(work)))
		q.busy += q.lastDone - q.at
		q.drained += q.bytes
		q.head, q.n, q.work, q.bytes = 0, 0, 0, 0
	}
	for work > 0 && q.n > 0 {
		e := &q.ring[q.head]
		if work >= e.work {
			work -= e.work
			q.work -= e.work
			q.remove(e.bytes)
			q.head = (q.head + 1) % len(q.ring)
			q.n--
			continue
		}
		part := e.bytes * float64(work) / float64(e.work)
		e.bytes -= part
		e.work -= work
		q.work -= work
		q.remove(part)
		work = 0
	}
	q.at = end
}

// hold adds t to the queue's work for other traffic on the link.
func (q *saveQueue) hold(t des.Time) {
	if q.n > 0 {
		q.ring[q.head].work += t
		q.work += t
	}
}

// bytesOf returns the bytes that the next work time of the queue brings to DRAM.
func (q *saveQueue) bytesOf(work des.Time) float64 {
	bytes := 0.0
	for i := 0; i < q.n && work > 0; i++ {
		e := &q.ring[(q.head+i)%len(q.ring)]
		bytes += e.bytes * math.Min(1, float64(work)/float64(e.work))
		work -= e.work
	}
	return bytes
}

func (q *saveQueue) remove(bytes float64) {
	q.bytes = math.Max(0, q.bytes-bytes)
	q.drained += bytes
}

// push appends a save.
func (q *saveQueue) push(bytes int64, work des.Time) {
	if q.n == len(q.ring) {
		grown := make([]save, max(64, 2*len(q.ring)))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = save{float64(bytes), work}
	q.n++
	q.work += work
	q.bytes += float64(bytes)
}

// until returns the time until the queue holds at most the given bytes.
func (q *saveQueue) until(bytes int64) des.Time {
	excess := q.bytes - float64(bytes)
	if excess <= 0 {
		return 0
	}
	if bytes <= 0 {
		return q.work
	}
	var t des.Time
	for i := range q.n {
		e := &q.ring[(q.head+i)%len(q.ring)]
		if excess <= e.bytes {
			t += des.Time(math.Ceil(float64(e.work) * excess / e.bytes))
			break
		}
		excess -= e.bytes
		t += e.work
	}
	return min(t, q.work)
}

// done returns when the last save lands in DRAM if nothing slows it.
func (q *saveQueue) done() des.Time {
	if q.n > 0 {
		return q.at + q.work
	}
	return q.lastDone
}
