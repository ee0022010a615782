package parallel_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda/live/parallel"
	"github.com/sparseserve/sparseserve/sim/des"
)

// A loop of independent iterations is shared over cores, where that pays.
func ExampleDo() {
	squares := make([]int, 1000)
	parallel.Do(len(squares), des.Microsecond, func(i int) { squares[i] = i * i })
	fmt.Println(squares[3], squares[999])
	// Output: 9 998001
}
