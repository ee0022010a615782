package mem

import (
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
)

// Staging uploads host data to the GPU: slots, lists, addresses, tokens. Arrays are written in
// pinned memory and copied together before the kernels that read them. Nothing is reused within a
// step, so nothing is overwritten while the GPU may still read it.
//
// An array that cannot be allocated is reported to Fail and replaced by memory that no GPU reads.
type Staging struct {
	Machine cuda.Machine
	Stream  cuda.Stream
	Fail    func(error)

	Uploads, UploadBytes int64 // copies to the GPU

	chunks []chunk
	at     int // chunk in use
}

type chunk struct {
	host       cuda.HostMemory
	device     cuda.Ptr
	bytes      []byte
	used, sent int64
}

const (
	StagingChunk = 32 << 20 // bytes
	stagingAlign = 256
)

// Reset starts a new step; the GPU is idle.
func (s *Staging) Reset() {
	for i := range s.chunks {
		s.chunks[i].used, s.chunks[i].sent = 0, 0
	}
	s.at = 0
}

func (c *chunk) alloc(bytes int64) (at int64, ok bool) {
	at = aligned(c.used, stagingAlign)
	if at+bytes > int64(len(c.bytes)) {
		return 0, false
	}
	c.used = at + bytes
	return at, true
}

func array[T any](c *chunk, at int64, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(c.bytes[at:]))), n)[:n:n]
}

// Words returns n 32-bit words to fill before the next Send, and their GPU address.
func (s *Staging) Words(n int) ([]int32, cuda.Ptr) { return stage[int32](s, n) }

// Longs is Words for 64-bit words.
func (s *Staging) Longs(n int) ([]int64, cuda.Ptr) { return stage[int64](s, n) }

func stage[T any](s *Staging, n int) ([]T, cuda.Ptr) {
	var one T
	bytes := int64(n) * int64(unsafe.Sizeof(one))
	if n == 0 {
		return nil, 0
	}
	for ; ; s.at++ {
		if s.at == len(s.chunks) {
			c, err := s.allocate(max(StagingChunk, bytes))
			if err != nil {
				s.Fail(err)
				return make([]T, n), 0
			}
			s.chunks = append(s.chunks, c)
		}
		if at, ok := s.chunks[s.at].alloc(bytes); ok {
			return array[T](&s.chunks[s.at], at, n), s.chunks[s.at].device + cuda.Ptr(at)
		}
	}
}

func (s *Staging) allocate(bytes int64) (c chunk, err error) {
	if c.host, err = s.Machine.HostAlloc(bytes, cuda.DriverPages); err != nil {
		return c, err
	}
	c.bytes = c.host.Bytes()
	c.device, err = s.Machine.DeviceAlloc(bytes)
	return c, err
}

// Send uploads what has been written since the last Send.
func (s *Staging) Send() {
	for i := range s.chunks {
		c := &s.chunks[i]
		if c.used == c.sent {
			continue
		}
		from := c.sent
		c.sent = c.used
		s.Copy(c.device+cuda.Ptr(from), c.host.Ptr()+cuda.Ptr(from), c.used-from)
	}
}

// Copy copies pinned memory to the GPU.
func (s *Staging) Copy(to, from cuda.Ptr, bytes int64) {
	s.Uploads++
	s.UploadBytes += bytes
	s.Fail(s.Machine.Launch(&cuda.MemcpyArgs{Dst: to, Src: from, Bytes: bytes}, s.Stream))
}
