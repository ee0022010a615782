package live_test

import (
	"context"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// A server schedules requests on a device that computes them: here a tiny random Llama on the
// emulator, one prompt of 20 tokens and 4 tokens to generate, with dense attention in HBM.
func ExampleDevice() {
	shape := tiny(llm.Model{
		Layers: 2, Hidden: 64, QHeads: 2, KVHeads: 1, HeadDim: 64, FFN: 48, Vocab: 53,
	})
	source, err := weights.NewRandom(shape, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := cases()["mha/dense"].spec
	model := shape.Model
	const kvBytes = 1 << 20
	device, err := live.New(emulator.New(emulator.Config{}), live.Config{
		Spec: &spec, Geometry: model.Geometry(spec.BlockTokens), Weights: source, KVBytes: kvBytes,
		Finished: func(id int, tokens []int32) {
			fmt.Println("request", id, "generated", tokens[20:])
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer device.Close()
	server, err := sim.NewServer(sim.Config{
		Spec: spec, Geometry: model.Geometry(spec.BlockTokens), HBMBytes: kvBytes, Addressed: true,
		Model: sim.Model{
			Layers: shape.Layers, KVHeads: shape.KVHeads, TokenValues: model.TokenValues(),
			MaxContext: 400,
		},
		Device: device,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	requests := &equals{left: 1, prompt: 20, output: 4}
	metrics, err := server.Run(context.Background(), requests, &counted{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("steps", metrics.Summary().Steps)
	// The device learns of finished requests with the step that follows.
	if err := device.Begin(&sim.Step{Index: 4, Dropped: server.Dropped()}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// steps 4
	// request 1 generated [2 26 5 14]
}
