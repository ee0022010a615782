package whatif_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/whatif"
)

// A range is written as --vary has it: factors of hardware, values of policy.
func ExampleParseRange() {
	for _, flag := range []string{"link=0.5..2", "budget=1024,4096", "link=2..1"} {
		r, err := whatif.ParseRange(flag)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.Knob.Name, r.Knob.Keys, r.At(3))
	}
	// Output:
	// link [card.link_h2d card.link_d2h] [0.5 1 2]
	// budget [selection.budget_tokens] [1024 4096]
	// --vary link=2..1: want two numbers, the lower first
}
