// Package reference computes in plain float64 Go the results that the CUDA kernels compute in fp16
// and fp32. The tests on a GPU, the emulator and the calibrator's checks compare with it. It
// favours clarity over speed; each function is its equation.
//
// Layouts are dense and row-major, as in cuda/sparseserve.h. softmax.go has the merge rule of
// split, chunked and progressive attention; prefill.go and psa.go attend; digest.go and topk.go
// select; llama.go has the steps of a layer, and llama_model.go combines them to a model over
// body.go.
package reference
