package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/cuda"
)

// chunkValues is the number of weights that are read and converted together.
const chunkValues = 1 << 18

// read fills dst, which has as many values as the tensor, on all cores: converting is
// slower than reading from the page cache.
func (s *stored) read(dst []cuda.Half) error {
	var next atomic.Int64
	var group errgroup.Group
	for range min(runtime.GOMAXPROCS(0), len(dst)/chunkValues+1) {
		group.Go(func() error {
			var wide []byte
			if s.dtype == "F32" {
				wide = make([]byte, 4*min(chunkValues, len(dst)))
			}
			for {
				from := int(next.Add(chunkValues)) - chunkValues
				if from >= len(dst) {
					return nil
				}
				if err := s.readChunk(dst[from:min(from+chunkValues, len(dst))], from,
					wide); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// readChunk reads the tensor's values from the given one on. F16 and BF16 have fp16's size and are
// read in place, F32 through wide.
func (s *stored) readChunk(to []cuda.Half, from int, wide []byte) error {
	raw := bytesOf(to)
	if s.dtype == "F32" {
		raw = wide[:4*len(to)]
	}
	if err := s.readBytes(raw, int64(from)*elementBytes[s.dtype]); err != nil {
		return err
	}
	for i, h := range to {
		var x float32
		switch s.dtype {
		case "F16":
			if infinite(h) {
				return unfit(from+i, h.Float())
			}
			continue
		case "F32":
			x = math.Float32frombits(binary.LittleEndian.Uint32(wide[4*i:]))
		case "BF16":
			x = math.Float32frombits(uint32(h) << 16)
		}
		if to[i] = cuda.HalfOf(float64(x)); infinite(to[i]) {
			return unfit(from+i, float64(x))
		}
	}
	return nil
}

func (s *stored) readBytes(to []byte, from int64) error {
	n, err := s.file.ReadAt(to, s.at+from)
	if n == len(to) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the file ended after %d of %d bytes; it has become shorter since it "+
			"was opened", from+int64(n), s.end-s.begin)
	}
	return err
}

// unfit returns the error for value i, which is not finite or not in fp16.
func unfit(i int, x float64) error {
	if x != x || math.IsInf(x, 0) {
		return fmt.Errorf("value %d is %g; the checkpoint is damaged", i, x)
	}
	return fmt.Errorf("value %d is %g, beyond fp16 (65504); the model can not be run in fp16", i, x)
}

// infinite reports infinities and NaNs.
func infinite(h cuda.Half) bool { return h&0x7c00 == 0x7c00 }

// bytesOf is the memory of dst. Safetensors, the GPU and every machine this runs on are little
// endian.
func bytesOf(dst []cuda.Half) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 2*len(dst))
}
