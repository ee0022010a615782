// Package parallel shares the short loops of a live step over CPU cores.
//
// A layer makes one or two calls of a few microseconds' work per core, and waking a
// sleeping thread costs as much as such a call. So helpers spin from layer to layer while
// the calls give them enough work: half of those not reserved always, all of them while each
// has worthStaying to do. The others sleep, and are woken when one call has much work for
// each of them, or many calls together. Spinning helpers compete with the threads that
// save blocks and with the driver; Reserve accounts for those.
//
// Do (parallel.go) is the value of sim.Config.Do and kv.Config.Do.
package parallel
