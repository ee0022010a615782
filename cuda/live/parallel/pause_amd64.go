package parallel

// Pause is the CPU's spin-wait hint: it yields the core to its other hyperthread.
func Pause()
