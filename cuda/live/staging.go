package live

import (
	"unsafe"

	"sparseserve/cuda"
)

// staging brings what the host knows to the GPU: slots, lists, addresses, tokens. Arrays are written in pinned memory and copied in one go
// before the kernels that read them, by a kernel: between two others a memcpy would take longer for its change of engines than for its bytes
// (cuda/carry.cu). Each layer has a part of its own, which begins with the lists that the server writes there (sim.Lender) and
// goes on with what else the layer's launches need; what concerns the step, or finds no room there, lies in chunks. Nothing is reused within a
// step, so nothing is overwritten while the GPU may still read it.
type staging struct {
	m        Machine
	counters *Counters
	chunks   []chunk
	at       int // chunk in use
	layers   []chunk
	layer    *chunk  // in use, nil: none
	slab     chunk   // that the layers share
	wanted   int     // words of lists that a layer had no room for
	notes    []chunk // of host memory alone, for operations that read host arrays
}

type chunk struct {
	host       cuda.HostMemory
	device     cuda.Ptr
	base       cuda.Ptr // on the host
	bytes      []byte
	words      []int32
	longs      []int64
	lists      int64 // bytes at the beginning that are the server's
	used, sent int64
}

const (
	stagingChunk = 32 << 20
	stagingNotes = 4 << 20
	stagingAlign = 256
)

func newStaging(m Machine, layers int, counters *Counters) *staging {
	return &staging{m: m, layers: make([]chunk, layers), counters: counters}
}

// reset starts a new step; the GPU is idle.
func (s *staging) reset() {
	for i := range s.chunks {
		s.chunks[i].used, s.chunks[i].sent = 0, 0
	}
	for i := range s.layers {
		s.layers[i].used, s.layers[i].sent = 0, 0
	}
	for i := range s.notes {
		s.notes[i].used = 0
	}
	s.at, s.layer = 0, nil
}

// take returns where the given bytes begin, if there is room for them.
func (c *chunk) take(bytes int64) (at int64, ok bool) {
	at = (c.used + stagingAlign - 1) / stagingAlign * stagingAlign
	if at+bytes > int64(len(c.bytes)) {
		return 0, false
	}
	c.used = at + bytes
	return at, true
}

// note returns an array that the host reads, and its address there.
func (s *staging) note(n int) ([]int64, cuda.Ptr, error) {
	bytes := int64(n) * 8
	last := len(s.notes) - 1
	if last >= 0 {
		if at, ok := s.notes[last].take(bytes); ok {
			return s.notes[last].longs[at/8:][:n:n], s.notes[last].base + cuda.Ptr(at), nil
		}
	}
	host, err := s.m.HostAlloc(max(stagingNotes, bytes), cuda.DriverPages)
	if err != nil {
		return nil, 0, err
	}
	s.notes = append(s.notes, chunk{host: host, base: host.Ptr(), bytes: host.Bytes(), longs: cuda.Slice[int64](host), used: bytes})
	return s.notes[last+1].longs[:n:n], host.Ptr(), nil
}

// room returns a chunk with the given bytes free and their offset.
func (s *staging) room(bytes int64) (*chunk, int64, error) {
	if s.layer != nil {
		if at, ok := s.layer.take(bytes); ok {
			return s.layer, at, nil
		}
	}
	return s.common(bytes)
}

// common is room for what concerns the step, beside the layers' parts.
func (s *staging) common(bytes int64) (*chunk, int64, error) {
	for ; ; s.at++ {
		if s.at == len(s.chunks) {
			c, err := s.allocate(max(stagingChunk, bytes))
			if err != nil {
				return nil, 0, err
			}
			s.chunks = append(s.chunks, c)
		}
		if at, ok := s.chunks[s.at].take(bytes); ok {
			return &s.chunks[s.at], at, nil
		}
	}
}

func (s *staging) allocate(bytes int64) (c chunk, err error) {
	if c.host, err = s.m.HostAlloc(bytes, cuda.DriverPages); err != nil {
		return c, err
	}
	if c.device, err = s.m.DeviceAlloc(bytes); err != nil {
		return c, err
	}
	c.base, c.bytes, c.words, c.longs = c.host.Ptr(), c.host.Bytes(), cuda.Slice[int32](c.host), cuda.Slice[int64](c.host)
	return c, nil
}

func (s *staging) free(c *chunk) error {
	if len(c.bytes) == 0 {
		return nil
	}
	if err := s.m.HostFree(c.host); err != nil {
		return err
	}
	return s.m.DeviceFree(c.device)
}

// partBytes is a layer's part, for lists of so many words.
func partBytes(words int) int64 {
	lists := int64(words) * 4
	return (lists + lists/spareShare + stagingSpare + stagingAlign - 1) / stagingAlign * stagingAlign
}

// stagingSpare is for what a layer's launches need beside its lists.
const stagingSpare = 64 << 10

// divide gives every layer room for the lists that it lacked room for, and half as much again. The GPU is idle. The new memory is another, before the
// old is given back: from its address the server sees that its lists are gone.
func (s *staging) divide() error {
	if s.wanted == 0 {
		return nil
	}
	bytes := partBytes(s.wanted + s.wanted/2)
	slab, err := s.allocate(bytes * int64(len(s.layers)))
	if err != nil {
		return err
	}
	if err := s.free(&s.slab); err != nil {
		return err
	}
	s.slab, s.layer, s.wanted = slab, nil, 0
	for i := range s.layers {
		at := bytes * int64(i)
		s.layers[i] = chunk{
			device: slab.device + cuda.Ptr(at), base: slab.base + cuda.Ptr(at),
			bytes: slab.bytes[at:][:bytes:bytes], words: slab.words[at/4:][:bytes/4], longs: slab.longs[at/8:][:bytes/8],
		}
	}
	return nil
}

// lend begins a layer's part with the server's lists; nil where there is no room for them before the next step.
func (s *staging) lend(layer, words int) []int32 {
	c := &s.layers[layer]
	if int64(words)*4 > int64(len(c.bytes)) {
		s.wanted, s.layer = max(s.wanted, words), nil
		return nil
	}
	c.lists = int64(words) * 4
	c.used, c.sent = c.lists, 0
	s.layer = c
	return c.words[:words:words]
}

// keep says that the layer's lists, if they lie in its part, are on the GPU as they are.
func (s *staging) keep(lists []int32) {
	if _, lent := s.lent(lists); lent {
		s.layer.sent = max(s.layer.sent, s.layer.lists)
	}
}

// lent returns the address on the GPU of what the server wrote to a layer's part.
func (s *staging) lent(words []int32) (cuda.Ptr, bool) {
	p := cuda.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(words))))
	if s.layer == nil || p < s.layer.base || p >= s.layer.base+cuda.Ptr(s.layer.lists) {
		return 0, false
	}
	return s.layer.device + (p - s.layer.base), true
}

// words returns an array to fill and the address that it will have on the GPU.
func (s *staging) words(n int) ([]int32, cuda.Ptr, error) {
	c, at, err := s.room(int64(n) * 4)
	if err != nil {
		return nil, 0, err
	}
	return c.words[at/4:][:n:n], c.device + cuda.Ptr(at), nil
}

// stepWords is words for what more than one layer reads: it goes up with the step's other arrays.
func (s *staging) stepWords(n int) ([]int32, cuda.Ptr, error) {
	c, at, err := s.common(int64(n) * 4)
	if err != nil {
		return nil, 0, err
	}
	return c.words[at/4:][:n:n], c.device + cuda.Ptr(at), nil
}

func (s *staging) longs(n int) ([]int64, cuda.Ptr, error) {
	c, at, err := s.room(int64(n) * 8)
	if err != nil {
		return nil, 0, err
	}
	return c.longs[at/8:][:n:n], c.device + cuda.Ptr(at), nil
}

// send copies all that was written since the last call: one launch, unless the layer's part was too small.
func (s *staging) send(stream cuda.Stream) error {
	if s.layer != nil {
		if err := s.upload(s.layer, stream); err != nil {
			return err
		}
	}
	for i := range s.chunks {
		if err := s.upload(&s.chunks[i], stream); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) upload(c *chunk, stream cuda.Stream) error {
	if c.used == c.sent {
		return nil
	}
	from := c.sent
	c.sent = c.used
	return s.copyUp(c.device+cuda.Ptr(from), c.base+cuda.Ptr(from), c.used-from, stream)
}

// copyUp copies from pinned memory to the GPU. Both addresses are alike modulo stagingAlign, as the chunks begin there on either side.
func (s *staging) copyUp(to, from cuda.Ptr, bytes int64, stream cuda.Stream) error {
	s.counters.Uploads++
	s.counters.UploadBytes += bytes
	return s.m.Carry(&cuda.MemcpyArgs{Dst: to, Src: from, Bytes: bytes}, stream)
}

func (s *staging) close() error {
	for i := range s.chunks {
		if err := s.free(&s.chunks[i]); err != nil {
			return err
		}
	}
	for i := range s.notes {
		if err := s.m.HostFree(s.notes[i].host); err != nil {
			return err
		}
	}
	s.chunks, s.layers, s.notes = nil, nil, nil
	return s.free(&s.slab)
}
