// Package cuda opens libsparseserve.so, the CUDA kernels of this folder, at run time and calls it
// without cgo.
//
// The same static program runs where there is no library and no GPU, and reports which is missing.
// A Library owns one OS thread; calls happen there, through the Session that Do hands out:
//
//	lib, err := cuda.Open("")
//	err = lib.Do(func(s *cuda.Session) error {
//		if err := s.Init(0); err != nil {
//			return err // errors.Is(err, cuda.NoDriver), errors.Is(err, cuda.NoDevice), ...
//		}
//		pool, err := s.DeviceAlloc(1 << 30)
//		...
//		return s.Launch(&cuda.DecodeArgs{Pool: pool, ...}, 0)
//	})
//
// Read machine.go (what a Session can do; package emulator is a Machine without a GPU), library.go
// (finding and opening), session.go (memory, streams, events), args.go (one struct an operation,
// laid out as in sparseserve.h, which documents shapes and equations), operation.go (launching) and
// bench.go (timing). The kernels start at decode.cuh and copy_blocks.cuh; package reference has the
// float64 reference of each.
package cuda
