package patterns_test

import (
	"context"
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/patterns"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// For each head the search takes the pattern whose attention output is nearest to dense
// attention's, among candidates that cost the same on a card. Here heads are synthetic.
func ExampleSearch() {
	const tokens = 2048
	p, err := hw.Load("a100-80gb", "vllm-0.5", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := llm.Load("llama3-8b-1m")
	if err != nil {
		fmt.Println(err)
		return
	}
	space, err := patterns.Space(p, &m, tokens)
	if err != nil {
		fmt.Println(err)
		return
	}
	var planted [3]pattern.Kind
	found, err := patterns.Search(context.Background(), len(planted),
		func(i int) (h *patterns.Head, err error) {
			h, planted[i] = patterns.Planted(1, i, tokens)
			return h, nil
		}, space)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, a := range found {
		fmt.Printf("planted %s, found %s\n", planted[i], a.Head)
	}
	// Output:
	// planted a-shape, found a-shape (64, 256)
	// planted vertical-slash, found vertical-slash (205, 67)
	// planted block-sparse, found block-sparse (4)
}
