package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"sparseserve/cuda"
)

// chunkValues is how many F32 weights are converted at a time.
const chunkValues = 1 << 18

// read fills dst, which has as many values as the tensor.
func (s *stored) read(dst []cuda.Half) error {
	switch s.dtype {
	case "F32":
		return s.read32(dst)
	case "BF16":
		return s.readBrain(dst)
	}
	if err := s.readBytes(bytesOf(dst), 0); err != nil {
		return err
	}
	for i, h := range dst {
		if infinite(h) {
			return damaged(i, h.Float())
		}
	}
	return nil
}

// readBrain converts in place: both types have two bytes.
func (s *stored) readBrain(dst []cuda.Half) error {
	if err := s.readBytes(bytesOf(dst), 0); err != nil {
		return err
	}
	for i, h := range dst {
		x := math.Float32frombits(uint32(h) << 16)
		if dst[i] = halfOf(x); infinite(dst[i]) {
			return overflow(i, x)
		}
	}
	return nil
}

func (s *stored) read32(dst []cuda.Half) error {
	buffer := make([]byte, 4*min(chunkValues, len(dst)))
	for from := 0; from < len(dst); from += chunkValues {
		chunk := dst[from:min(from+chunkValues, len(dst))]
		if err := s.readBytes(buffer[:4*len(chunk)], int64(from)*4); err != nil {
			return err
		}
		for i := range chunk {
			x := math.Float32frombits(binary.LittleEndian.Uint32(buffer[4*i:]))
			if chunk[i] = halfOf(x); infinite(chunk[i]) {
				return overflow(from+i, x)
			}
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
		return fmt.Errorf("the file ended after %d of %d bytes; it has become shorter since it was opened", from+int64(n), s.end-s.begin)
	}
	return err
}

func overflow(i int, x float32) error {
	if x != x || math.IsInf(float64(x), 0) {
		return damaged(i, float64(x))
	}
	return fmt.Errorf("value %d is %g, beyond fp16 (65504); the model can not be run in fp16", i, x)
}

func damaged(i int, x float64) error {
	return fmt.Errorf("value %d is %g; the checkpoint is damaged", i, x)
}

// bytesOf is the memory of dst. Safetensors, the GPU and every machine this runs on are little endian.
func bytesOf(dst []cuda.Half) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 2*len(dst))
}
