package live

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live/queue"
)

// A job of more blocks than are copied between two looks at hold arrives whole, each block where it
// belongs, by every engine.
func TestLargeJobArrives(t *testing.T) {
	const blockBytes, ring, at, n = 64, 2000, 5, 2*savePart + 100
	for _, engine := range []string{"memcpy", "gpu", "flash"} {
		t.Run(engine, func(t *testing.T) {
			m := emulator.New(emulator.Config{})
			defer m.Close()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			q, err := queue.New(m, new(int64))
			must(err)
			defer q.Close()
			stream, err := m.StreamCreate(true)
			must(err)
			src, err := m.HostAlloc(n*blockBytes, cuda.DriverPages)
			must(err)
			dram, err := m.HostAlloc(n*blockBytes, cuda.DriverPages)
			must(err)
			from, to := cuda.Slice[byte](src), cuda.Slice[byte](dram)
			for i := range from {
				from[i] = byte(i / blockBytes >> (i % 2 * 8)) // the block's number, over and over
			}
			s, err := newSaver(q, engine, ring*blockBytes, blockBytes, 2)
			must(err)
			must(q.Launch(&cuda.MemcpyArgs{Dst: s.ring + at*blockBytes, Src: src.Ptr(),
				Bytes: n * blockBytes}, stream))
			for i := range int64(n) { // in reverse order
				s.to(at+i, dram.Ptr()+cuda.Ptr((n-1-i)*blockBytes))
			}
			ready, err := s.record(stream)
			must(err)
			_, err = s.submit(0, 0, at, n, at+n, ready)
			must(err)
			_, err = s.drain()
			must(err)
			for i := range n {
				if got, want := to[(n-1-i)*blockBytes:][:blockBytes],
					from[i*blockBytes:][:blockBytes]; !bytes.Equal(got, want) {
					t.Fatalf("block %d of %d: %v, want %v", i, n, got, want)
				}
			}
			s.close()
		})
	}
}

// A save whose blocks never get into the ring does not let its waiters wait.
func TestSaveBehindAFailureFails(t *testing.T) {
	t.Parallel()
	machine := emulator.New(emulator.Config{})
	defer machine.Close()
	m := &failing{Machine: machine}
	q, err := queue.New(m, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	s, err := newSaver(q, "gpu", 64*64, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := machine.StreamCreate(false)
	if err != nil {
		t.Fatal(err)
	}
	_ = q.Launch(&cuda.GPUScatterArgs{Count: 1}, stream) // seen below
	at, end, _, err := s.reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := s.record(stream)
	if err == nil {
		_, err = s.submit(3, 2, at, 1, end, ready)
	}
	if err == nil {
		_, err = s.drain()
	}
	var failed *cuda.Error
	if !errors.As(err, &failed) {
		t.Errorf("%v, want the scatter's failure", err)
	}
	s.close()
}

type failing struct{ cuda.Machine }

func (f *failing) Launch(cuda.Operation, cuda.Stream) error {
	return &cuda.Error{Call: "ss_gpu_scatter", Code: cuda.Failed, Text: "an illegal memory access " +
		"was encountered"}
}
