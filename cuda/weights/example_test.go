package weights_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// A source lists its tensors and reads one at a time, in the layout of the GPU.
func ExampleSource() {
	var source weights.Source
	source, err := weights.NewRandom(weights.Config{Model: llm.Model{
		Name: "tiny", Layers: 1, Hidden: 64, QHeads: 2, KVHeads: 1, HeadDim: 64, FFN: 96, Vocab: 100,
		MaxContext: 512, WeightBytesEach: 2, KVBytesEach: 2,
	}}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := source.Config()
	fmt.Printf("%d bytes, rotary base %g\n", c.WeightBytes(), c.Rope.Theta)
	for _, t := range c.Tensors()[:3] {
		rows, columns := t.Shape(c)
		values := make([]cuda.Half, t.Values(c))
		if err := source.Read(t, values); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v [%d][%d], first value %.4f\n", t, rows, columns, values[0].Float())
	}
	// Output:
	// 112000 bytes, rotary base 10000
	// embed [100][64], first value -0.5322
	// layers.0.attn_norm [1][64], first value 1.0000
	// layers.0.qkv [256][64], first value 0.0239
}
