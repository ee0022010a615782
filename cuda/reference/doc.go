// Package reference computes in plain float64 Go what the CUDA kernels compute in fp16 and fp32:
// the tests on a GPU, the emulator and the calibrator's checks compare with it. Clarity comes
// before speed; each function is its equation.
//
// Layouts are dense and row-major, as in cuda/sparseserve.h. softmax.go has the algebra that split,
// chunked and progressive attention share; cache.go is the paged KV cache; decode.go, psa.go and
// prefill.go attend over it; digest.go and topk.go select; llama.go has the steps of a layer, and
// llama_model.go puts them together to a model.
package reference
