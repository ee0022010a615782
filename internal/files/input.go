package files

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Stdin is the path of standard input. A file with this name is "./-".
const Stdin = "-"

func isStdin(path string) bool { return path == Stdin || path == "/dev/stdin" }

// Label returns the name of a path for messages.
func Label(path string) string {
	if path == Stdin {
		return "standard input"
	}
	return path
}

// Once reports whether the input at a path can be read only once: standard input, a FIFO or a
// shell's <(command).
func Once(path string) bool {
	if isStdin(path) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// Input opens a file or a pipe for one reading. It refuses terminals and devices.
func Input(path string) (io.ReadCloser, error) {
	f, closer := os.Stdin, io.NopCloser(nil)
	if !isStdin(path) {
		var err error
		if f, err = Open(path); err != nil {
			return nil, err
		}
		closer = f
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&fs.ModeDevice != 0 {
		err = errors.New("a terminal or a device; give a file, or pipe one into it")
	}
	b := bufio.NewReaderSize(f, 64<<10)
	if err == nil && Once(path) {
		if _, e := b.Peek(1); e == io.EOF {
			err = errors.New("empty; nothing was written to it")
		}
	}
	if err != nil {
		closer.Close()
		return nil, fmt.Errorf("%s: %w", Label(path), err)
	}
	return struct {
		io.Reader
		io.Closer
	}{b, closer}, nil
}

// mostKept is the maximum size that Again keeps, in bytes.
const mostKept = 16 << 30

// kept caches inputs that can be read only once. It is global, because standard input is.
var kept struct {
	sync.Mutex
	files map[string]*io.SectionReader
}

// Again opens a file any number of times. An input that can be read only once is copied, at first
// use, to an unlinked temporary file.
func Again(path string) (io.ReadCloser, error) {
	if !Once(path) {
		return Input(path)
	}
	kept.Lock()
	defer kept.Unlock()
	r, ok := kept.files[path]
	if !ok {
		var err error
		if r, err = keep(path); err != nil {
			return nil, err
		}
		if kept.files == nil {
			kept.files = map[string]*io.SectionReader{}
		}
		kept.files[path] = r
	}
	return io.NopCloser(io.NewSectionReader(r, 0, r.Size())), nil
}

func keep(path string) (*io.SectionReader, error) {
	from, err := Input(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	f, err := os.CreateTemp("", "sparseserve-input-")
	if err != nil {
		return nil, fmt.Errorf("%s: no temporary file to read it into: %w", Label(path), err)
	}
	n, err := io.Copy(f, io.LimitReader(from, mostKept+1))
	if err == nil && n > mostKept {
		err = fmt.Errorf("more than %d GiB; write it to a file", mostKept>>30)
	}
	if err := errors.Join(err, os.Remove(f.Name())); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", Label(path), err)
	}
	return io.NewSectionReader(f, 0, n), nil
}

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
