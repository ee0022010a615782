package hw

import (
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// asleep is what a layer's round trip takes longer where the threads that share the
// lookup have gone to sleep: they wait for the next layer for kv.HelpersAwake, and one
// that copies hundreds of blocks one by one takes longer. The CPU then wakes them and
// does their part meanwhile. A step's first layer has it in the host's time of the
// step. The zero value costs nothing.
type asleep struct {
	late  des.Time // of a layer
	since des.Time // when the last layer was looked up; 0: none in this step
}

// wakes returns what a layer of so many lists takes longer whose lookup begins now.
func (a *asleep) wakes(now des.Time, lists int) des.Time {
	if a.since == 0 || now-a.since <= nanoseconds(kv.HelpersAwake.Seconds()) || lists <= listsAlone {
		return 0
	}
	return a.late
}

// listsAlone are looked up without help.
const listsAlone = 8
