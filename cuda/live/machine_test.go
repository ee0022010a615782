package live

import (
	"sparseserve/cuda"
	"sparseserve/cuda/soft"
)

// Both devices are machines, or this does not compile.
var (
	_ Machine = (*cuda.Session)(nil)
	_ Machine = (*soft.Machine)(nil)
)
