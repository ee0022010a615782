package live

import (
	"sparseserve/cuda"
)

// staging brings what the host knows to the GPU: slots, lists, addresses, tokens. Arrays are written in pinned memory and copied in one go
// before the kernels that read them. Nothing is reused within a step, so nothing is overwritten while the GPU may still read it.
type staging struct {
	m      Machine
	chunks []chunk
	at     int // chunk in use
}

type chunk struct {
	host       cuda.HostMemory
	device     cuda.Ptr
	bytes      []byte
	words      []int32
	longs      []int64
	used, sent int64
}

const (
	stagingChunk = 32 << 20
	stagingAlign = 256
)

func newStaging(m Machine) *staging { return &staging{m: m} }

// reset starts a new step; the GPU is idle.
func (s *staging) reset() {
	for i := range s.chunks {
		s.chunks[i].used, s.chunks[i].sent = 0, 0
	}
	s.at = 0
}

// room returns a chunk with the given bytes free and their offset.
func (s *staging) room(bytes int64) (*chunk, int64, error) {
	for ; ; s.at++ {
		if s.at == len(s.chunks) {
			if err := s.grow(max(stagingChunk, bytes)); err != nil {
				return nil, 0, err
			}
		}
		c := &s.chunks[s.at]
		if from := (c.used + stagingAlign - 1) / stagingAlign * stagingAlign; from+bytes <= int64(len(c.bytes)) {
			c.used = from + bytes
			return c, from, nil
		}
	}
}

func (s *staging) grow(bytes int64) error {
	host, err := s.m.HostAlloc(bytes, cuda.DriverPages)
	if err != nil {
		return err
	}
	device, err := s.m.DeviceAlloc(bytes)
	if err != nil {
		return err
	}
	s.chunks = append(s.chunks, chunk{host: host, device: device, bytes: host.Bytes(), words: cuda.Slice[int32](host), longs: cuda.Slice[int64](host)})
	return nil
}

// words returns an array to fill and the address that it will have on the GPU.
func (s *staging) words(n int) ([]int32, cuda.Ptr, error) {
	c, at, err := s.room(int64(n) * 4)
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

// send copies all that was written since the last call.
func (s *staging) send(stream cuda.Stream) error {
	for i := range s.chunks {
		c := &s.chunks[i]
		if c.used == c.sent {
			continue
		}
		from := c.sent
		c.sent = c.used
		if err := s.m.Memcpy(&cuda.MemcpyArgs{Dst: c.device + cuda.Ptr(from), Src: c.host.Ptr() + cuda.Ptr(from), Bytes: c.used - from}, stream); err != nil {
			return err
		}
	}
	return nil
}

// pinned returns the pinned address of an array on the GPU's side, for operations that read host arrays.
func (s *staging) pinned(device cuda.Ptr) cuda.Ptr {
	for i := range s.chunks {
		if c := &s.chunks[i]; device >= c.device && device < c.device+cuda.Ptr(len(c.bytes)) {
			return c.host.Ptr() + (device - c.device)
		}
	}
	panic("live: an address that staging did not hand out")
}

func (s *staging) close() error {
	for i := range s.chunks {
		if err := s.m.HostFree(s.chunks[i].host); err != nil {
			return err
		}
		if err := s.m.DeviceFree(s.chunks[i].device); err != nil {
			return err
		}
	}
	s.chunks = nil
	return nil
}
