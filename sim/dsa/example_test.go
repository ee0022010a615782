package dsa_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/dsa"
)

// A policy picks from the criticality of a group's candidate blocks in one step.
func ExampleTopK() {
	view := dsa.View{Critical: []float32{0.1, 2.5, -1, 0.9, 1.7}}
	picked, used := dsa.TopK{K: 2}.Picker().Pick(&view, nil)
	fmt.Println(picked, used)
	// Output: [1 4] 2
}

// PSA attends to microbatches in order of criticality until the blocks seen hold epsilon of
// the estimated attention; with pipelining the next microbatch is loaded by then.
func ExamplePSA() {
	scores := []float32{0.1, 4, -1, 3, 1}
	view := dsa.View{Critical: scores, Score: [][]float32{scores}, Skew: 1}
	picked, used := dsa.PSA{Epsilon: 0.8, Microbatch: 1, Ahead: 1}.Picker().Pick(&view, nil)
	fmt.Println(picked, used)
	// Output: [1 3 4 0] 3
}
