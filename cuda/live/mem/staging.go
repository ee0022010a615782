package mem

import (
	"slices"
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
)

// Staging uploads host data to the GPU: slots, lists, addresses, tokens. Arrays are written in
// pinned memory and copied together before the kernels that read them. A kernel copies them:
// between two other kernels the copy engine's latency would exceed the copy (cuda/carry.cu). Each
// layer has its own part, which begins with the lists that the server writes there (sim.ListMemory)
// and continues with the other arrays of the layer's launches. Arrays of the step, or that do not
// fit there, are in chunks. Nothing is reused within a step, so nothing is overwritten while the
// GPU may still read it.
//
// An array that cannot be allocated is reported to Fail and replaced by memory that no GPU reads.
type Staging struct {
	Machine cuda.Machine
	Stream  cuda.Stream
	Fail    func(error)

	Uploads, UploadBytes int64 // copies to the GPU

	chunks []chunk
	at     int // chunk in use
	layers []chunk
	layer  *chunk  // in use, nil: none
	slab   chunk   // that the layers share
	wanted int     // words of lists that did not fit a layer's part
	notes  []chunk // of host memory, for operations that read host arrays
}

type chunk struct {
	host       cuda.HostMemory
	device     cuda.Ptr
	base       cuda.Ptr // on the host
	bytes      []byte
	lists      int64 // bytes at the beginning that are the server's
	used, sent int64
}

// Sizes of the first chunk, and of the first host-only memory.
const (
	StagingChunk = 32 << 20
	StagingNotes = 4 << 20
	stagingAlign = 256
)

// Open creates a part for each layer; the parts have no memory yet.
func (s *Staging) Open(layers int) { s.layers = make([]chunk, layers) }

// Reset starts a new step; the GPU is idle.
func (s *Staging) Reset() {
	for _, all := range [][]chunk{s.chunks, s.layers, s.notes} {
		for i := range all {
			all[i].used, all[i].sent = 0, 0
		}
	}
	s.at, s.layer = 0, nil
}

// alloc returns the offset of the given bytes, if they fit.
func (c *chunk) alloc(bytes int64) (at int64, ok bool) {
	at = aligned(c.used, stagingAlign)
	if at+bytes > int64(len(c.bytes)) {
		return 0, false
	}
	c.used = at + bytes
	return at, true
}

// array returns n values of T at offset at of the chunk.
func array[T any](c *chunk, at int64, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(c.bytes[at:]))), n)[:n:n]
}

// Words returns an array to fill and its address on the GPU.
func (s *Staging) Words(n int) ([]int32, cuda.Ptr) { return stage[int32](s, s.layer, n) }

// Longs is Words with 64 bits.
func (s *Staging) Longs(n int) ([]int64, cuda.Ptr) { return stage[int64](s, s.layer, n) }

// StepWords is Words for arrays that several layers read: it is uploaded with the step's arrays.
func (s *Staging) StepWords(n int) ([]int32, cuda.Ptr) { return stage[int32](s, nil, n) }

// stage allocates an array in the layer's part if it fits there, otherwise in the step's chunks.
func stage[T any](s *Staging, layer *chunk, n int) ([]T, cuda.Ptr) {
	var one T
	bytes := int64(n) * int64(unsafe.Sizeof(one))
	if n == 0 {
		return nil, 0
	}
	if layer != nil {
		if at, ok := layer.alloc(bytes); ok {
			return array[T](layer, at, n), layer.device + cuda.Ptr(at)
		}
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

// Note returns an array that the host reads, and its host address.
func (s *Staging) Note(n int) ([]int64, cuda.Ptr) {
	bytes := int64(n) * 8
	if last := len(s.notes) - 1; last >= 0 {
		if at, ok := s.notes[last].alloc(bytes); ok {
			return array[int64](&s.notes[last], at, n), s.notes[last].base + cuda.Ptr(at)
		}
	}
	host, err := s.Machine.HostAlloc(max(StagingNotes, bytes), cuda.DriverPages)
	if err != nil {
		s.Fail(err)
		return make([]int64, n), 0
	}
	s.notes = append(s.notes, chunk{host: host, base: host.Ptr(), bytes: host.Bytes(), used: bytes})
	return cuda.Slice[int64](host)[:n:n], host.Ptr()
}

func (s *Staging) allocate(bytes int64) (c chunk, err error) {
	if c.host, err = s.Machine.HostAlloc(bytes, cuda.DriverPages); err != nil {
		return c, err
	}
	c.base, c.bytes = c.host.Ptr(), c.host.Bytes()
	c.device, err = s.Machine.DeviceAlloc(bytes)
	return c, err
}

// PartBytes returns the size of a layer's part with the given words of lists.
func PartBytes(words int) int64 {
	lists := int64(words) * 4
	return aligned(lists+lists/spareShare+stagingSpare, stagingAlign)
}

// stagingSpare is for the arrays of a layer's launches other than lists.
const stagingSpare = 64 << 10

// Divide gives every layer memory for the lists that did not fit, and half as much again. It
// reports whether it allocated. The GPU is idle. The new memory is allocated before the old is
// freed, so the server sees from its address that its lists are gone.
func (s *Staging) Divide() (bool, error) {
	if s.wanted == 0 {
		return false, nil
	}
	bytes := PartBytes(s.wanted + s.wanted/2)
	slab, err := s.allocate(bytes * int64(len(s.layers)))
	if err != nil {
		return true, err
	}
	if len(s.slab.bytes) > 0 {
		if err := s.Machine.HostFree(s.slab.host); err != nil {
			return true, err
		}
		if err := s.Machine.DeviceFree(s.slab.device); err != nil {
			return true, err
		}
	}
	s.slab, s.layer, s.wanted = slab, nil, 0
	for i := range s.layers {
		at := bytes * int64(i)
		s.layers[i] = chunk{
			device: slab.device + cuda.Ptr(at), base: slab.base + cuda.Ptr(at),
			bytes: slab.bytes[at:][:bytes:bytes],
		}
	}
	return true, nil
}

// Lend starts a layer's part with the server's lists; nil if they do not fit before the next step.
func (s *Staging) Lend(layer, words int) []int32 {
	c := &s.layers[layer]
	if int64(words)*4 > int64(len(c.bytes)) {
		s.wanted, s.layer = max(s.wanted, words), nil
		return nil
	}
	c.lists = int64(words) * 4
	c.used, c.sent = c.lists, c.lists
	s.layer = c
	return array[int32](c, 0, words)
}

// Changed makes the next upload of the layer's part include its lists, if they are there. Otherwise
// the lists on the GPU are up to date.
func (s *Staging) Changed(lists []int32) {
	if _, lent := s.Lent(lists); lent {
		s.layer.sent = 0
	}
}

// Part returns the contents of the layer's part, including lists, on the host and on the GPU. The
// caller uploads it in place of Send.
func (s *Staging) Part() (host, device cuda.Ptr, bytes int64) {
	c := s.layer
	c.sent = c.used
	return c.base, c.device, aligned(c.used, 16)
}

// Fits reports whether the layer's part has room for more bytes; if not, the next step's part has.
func (s *Staging) Fits(bytes int64) bool {
	if all := s.layer.used + bytes; all > int64(len(s.layer.bytes)) {
		s.wanted = max(s.wanted, int(all/4))
		return false
	}
	return true
}

// Spilled reports whether arrays since the last Send did not fit the layer's part and need another
// upload.
func (s *Staging) Spilled() bool {
	return slices.ContainsFunc(s.chunks, func(c chunk) bool { return c.used != c.sent })
}

// Lent returns the GPU address of the server's words in a layer's part.
func (s *Staging) Lent(words []int32) (cuda.Ptr, bool) {
	p := cuda.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(words))))
	if s.layer == nil || p < s.layer.base || p >= s.layer.base+cuda.Ptr(s.layer.lists) {
		return 0, false
	}
	return s.layer.device + (p - s.layer.base), true
}

// Send uploads all arrays written since the last call: one launch, unless the layer's part was too
// small.
func (s *Staging) Send() {
	if s.layer != nil {
		s.upload(s.layer)
	}
	for i := range s.chunks {
		s.upload(&s.chunks[i])
	}
}

func (s *Staging) upload(c *chunk) {
	if c.used == c.sent {
		return
	}
	from := c.sent
	c.sent = c.used
	s.Copy(c.device+cuda.Ptr(from), c.base+cuda.Ptr(from), c.used-from)
}

// Copy copies from pinned memory to the GPU. Both addresses are equal modulo stagingAlign, because
// chunks are aligned to it on both sides.
func (s *Staging) Copy(to, from cuda.Ptr, bytes int64) {
	s.Uploads++
	s.UploadBytes += bytes
	s.Fail(s.Machine.Launch(&cuda.CarryArgs{Dst: to, Src: from, Bytes: bytes}, s.Stream))
}
