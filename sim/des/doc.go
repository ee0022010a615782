// Package des is the discrete-event core: an integer clock, an event queue with a total order,
// and named random streams.
//
// Read time.go for the unit of simulated time, queue.go for the order of events, rand.go for
// how one seed serves every subsystem.
package des
