package sim

import "github.com/sparseserve/sparseserve/sim/des"

// ticket is a request on its way to a scheduler.
type ticket struct {
	id        int // 0: not numbered yet
	arrival   Arrival
	generated int  // tokens emitted by failed replicas
	pulls     bool // its arrival fetches the next request; not in a closed loop
	life

	stranded bool // waiting for a replica since this time
	since    des.Time
}

// tickets holds requests until they arrive, in reusable slots.
type tickets struct {
	held   []ticket
	vacant []int64
}

// hold stores a request and returns its slot.
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

// take returns the request of a slot and frees the slot.
func (t *tickets) take(place int64) ticket {
	one := t.held[place]
	t.held[place] = ticket{}
	t.vacant = append(t.vacant, place)
	return one
}

// len returns the number of stored requests.
func (t *tickets) len() int { return len(t.held) - len(t.vacant) }
