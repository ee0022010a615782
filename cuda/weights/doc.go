// Package weights holds the weights of a Llama-architecture model in fp16, tensor by tensor in the
// layout that the live device keeps on the GPU.
//
// A Source has the model's shape (Config) and reads one tensor at a time into the caller's buffer,
// so that a model is never in memory twice. There are two: Random, seeded, which the GPU can also
// fill by itself, and Folder, a HuggingFace folder of safetensors with its config.json, checked
// whole when it is opened, before the first weight is read.
//
// Read config.go (shapes), tensor.go (layout), rope.go (frequencies), random.go; then, for a
// folder, hfconfig.go, safetensors.go, shards.go, folder.go and read.go. reference.go hands a small
// model to the float64 reference.
package weights
