package mem_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
)

// Pieces of device memory come and go with requests; the device allocates one slab.
func ExampleArena() {
	m := emulator.New(emulator.Config{})
	defer m.Close()
	arena := mem.NewArena(m, 1<<20)
	for range 100 {
		piece, err := arena.Alloc(64<<10, "a request's table")
		if err != nil {
			fmt.Println(err)
			return
		}
		arena.Free(piece)
	}
	fmt.Println("slabs:", arena.Slabs())
	// Output: slabs: 1
}
