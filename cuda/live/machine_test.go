package live

import (
	"sparseserve/cuda"
	"sparseserve/cuda/emulator"
)

// Both devices are machines, or this does not compile.
var (
	_ Machine = (*cuda.Session)(nil)
	_ Machine = (*emulator.Machine)(nil)
)
