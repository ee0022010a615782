package hw

import (
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// asleep is what a layer's round trip takes longer where the threads that share the
// lookup have gone to sleep: they wait for the next layer for kv.HelpersAwake, and one
// that copies hundreds of blocks one by one takes longer. The CPU then wakes them and
// does their part meanwhile, which of few lists is little:
//
//	t = late min(1, lists/listsShared)
//
// A step's first layer has it in the host's time of the step. The zero value costs
// nothing.
type asleep struct {
	late  float64  // seconds of a layer of many lists
	since des.Time // when the last layer was looked up; 0: none in this step
}

// listsShared are those of four requests of 32 KV heads, the fewest measured.
const listsShared = 128

// wakes returns what a layer of so many lists takes longer whose lookup begins now.
func (a *asleep) wakes(now des.Time, lists int) des.Time {
	if a.since == 0 || now-a.since <= nanoseconds(kv.HelpersAwake.Seconds()) {
		return 0
	}
	return nanoseconds(a.of(lists))
}

func (a *asleep) of(lists int) float64 { return a.late * min(1, float64(lists)/listsShared) }

// AsleepSeconds returns what a layer of so many lists takes longer behind one that
// took longer than kv.HelpersAwake.
func (p *Profile) AsleepSeconds(lists int) float64 {
	a := asleep{late: p.Host.Asleep.optional()}
	return a.of(lists)
}
