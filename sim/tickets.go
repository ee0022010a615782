package sim

import "github.com/sparseserve/sparseserve/sim/des"

// ticket is a request on its way to a scheduler.
type ticket struct {
	id        int // 0: not numbered yet
	arrival   Arrival
	generated int  // tokens, by replicas that failed
	pulls     bool // its arrival has the next one fetched: of a workload that is no closed loop
	life

	stranded bool // no replica takes it, and
	since    des.Time
}

// tickets holds requests until they arrive, each in a place that is used again.
type tickets struct {
	held   []ticket
	vacant []int64
}

// hold keeps a request and returns its place.
func (t *tickets) hold(one ticket) int64 {
	if n := len(t.vacant); n > 0 {
		place := t.vacant[n-1]
		t.vacant = t.vacant[:n-1]
		t.held[place] = one
		return place
	}
	t.held = append(t.held, one)
	return int64(len(t.held) - 1)
}

// take returns the request of a place and empties it.
func (t *tickets) take(place int64) ticket {
	one := t.held[place]
	t.held[place] = ticket{}
	t.vacant = append(t.vacant, place)
	return one
}

// len counts the requests.
func (t *tickets) len() int { return len(t.held) - len(t.vacant) }
