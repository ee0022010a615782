package kv

// Pause tells the core that the thread spins, so that the core's other thread
// has it meanwhile.
func Pause()
