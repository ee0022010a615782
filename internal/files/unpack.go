package files

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// widest bounds the memory of a zstd decoder, in bytes: the window of zstd --long.
const widest = 128 << 20

// Unpack returns the content of gzip or zstd data (one or several concatenated archives), and other
// data unchanged. It detects the format by the first bytes. It streams in constant memory. Damaged
// or truncated data cause an error at the point of damage.
func Unpack(from io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(from, 64<<10)
	magic, _ := b.Peek(4) // an error comes again
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, PackedFault("gzip", err)
		}
		return &archive{"gzip", z, func() {}}, nil
	case isZstd(magic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(widest))
		if err != nil {
			return nil, PackedFault("zstd", err)
		}
		return &archive{"zstd", z, z.Close}, nil
	}
	return io.NopCloser(b), nil
}

// isZstd reports whether data begin with a zstd frame or a skippable frame.
func isZstd(magic []byte) bool {
	return bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(magic) == 4 && magic[0]>>4 == 5 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

// archive is a stream of compressed data.
type archive struct {
	kind  string
	r     io.Reader
	close func()
}

func (a *archive) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		err = PackedFault(a.kind, err)
	}
	return n, err
}

func (a *archive) Close() error {
	a.close()
	return nil
}
