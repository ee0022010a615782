// Package spin is for threads that wait for each other without sleeping.
package spin

// Pause tells the core that the thread spins, so that the core's other thread
// has it meanwhile.
func Pause()
