// Package oracle computes in plain float64 Go what the CUDA kernels compute in fp16 and fp32: the reference of the GPU tests and the
// arithmetic of the reference device.
//
// Nothing here is fast or clever; each function is its equation. Shapes are those of cuda/sparseserve.h, and slices hold them row-major, so
// a test can round its inputs to fp16 and give the same numbers to both sides.
//
// Read softmax.go (the algebra of partial softmaxes), cache.go (paged blocks), then decode.go, psa.go, prefill.go, digest.go, topk.go, llama.go
// (the rest of a layer) and llama_model.go (a whole model, without paging).
package oracle
