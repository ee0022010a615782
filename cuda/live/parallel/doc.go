// Package parallel shares the short loops of a live step over CPU cores.
//
// A layer makes one or two calls with a few microseconds of work per core, and waking a sleeping
// thread costs as much as such a call. So helpers spin from layer to layer while the calls give
// them enough work: half of the unreserved helpers always, all while each has worthStaying of work.
// The others sleep, and are woken when one call has much work for each helper, or many calls
// together have. Spinning helpers compete with the threads that save blocks and with the driver;
// Reserve accounts for these.
//
// Do (parallel.go) is the value of sim.Config.Do and kv.Config.Do.
package parallel
