package mem

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// Buffer is device memory that grows.
type Buffer struct {
	At    cuda.Ptr
	Bytes int64
}

// spareShare: a buffer gets 1/spareShare more than its size, so that it grows seldom.
const spareShare = 4

// WithSpare returns the allocated size of a buffer of the given bytes.
func WithSpare(bytes int64) int64 { return aligned(bytes+bytes/spareShare, 256) }

// aligned rounds bytes up to a multiple.
func aligned(bytes, to int64) int64 { return (bytes + to - 1) / to * to }

// Grow grows the buffer to at least the given bytes and reports whether it allocated, which loses
// the contents. Work that uses the old memory is on the stream.
func (b *Buffer) Grow(m cuda.Machine, on cuda.Stream, bytes int64, what string) (bool, error) {
	if b.Bytes >= bytes {
		return false, nil
	}
	if b.Bytes > 0 {
		if err := m.StreamSync(on); err != nil {
			return false, err
		}
	}
	if err := b.Free(m); err != nil {
		return false, err
	}
	bytes = WithSpare(bytes)
	at, err := m.DeviceAlloc(bytes)
	if err != nil {
		return false, fmt.Errorf("%s of %s: %w", what, GiB(bytes), err)
	}
	b.At, b.Bytes = at, bytes
	return true, nil
}

// Free frees the memory, if there is any.
func (b *Buffer) Free(m cuda.Machine) error {
	if b.Bytes == 0 {
		return nil
	}
	b.Bytes = 0
	return m.DeviceFree(b.At)
}

// GiB formats bytes for messages.
func GiB(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }
