package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
)

// A safetensors file is the header's length as 8 little-endian bytes, the header as JSON, then the
// data. The header maps each tensor's name to its type, shape and the range of its bytes, counted
// from the first byte of the data.
type entry struct {
	name       string
	dtype      string
	shape      []int64
	begin, end int64 // of the data
}

// maxHeader is the format's own limit.
const maxHeader = 100_000_000

// elementBytes gives the types that can be read; the sizes of others are not checked, because such
// a tensor is refused when it is needed.
var elementBytes = map[string]int64{"F16": 2, "BF16": 2, "F32": 4}

// readHeader returns the tensors of a file of the given size, in the order of their data, and where
// the data starts.
func readHeader(r io.ReaderAt, size int64) (entries []entry, start int64, err error) {
	var prefix [8]byte
	if size < 8 {
		return nil, 0, fmt.Errorf("not a safetensors file: %d bytes, shorter than the header's "+
			"length; was it downloaded whole?", size)
	}
	if _, err := r.ReadAt(prefix[:], 0); err != nil {
		return nil, 0, fmt.Errorf("reading the header's length: %w", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	switch {
	case length > maxHeader:
		return nil, 0, fmt.Errorf("not a safetensors file: a header of %d bytes, the format "+
			"allows %d", length, maxHeader)
	case int64(length) > size-8:
		return nil, 0, fmt.Errorf("truncated: the header alone has %d bytes, the file %d; "+
			"download it again", length, size)
	}
	data := make([]byte, length)
	if _, err := r.ReadAt(data, 8); err != nil {
		return nil, 0, fmt.Errorf("reading the header: %w", err)
	}
	start = 8 + int64(length)
	entries, err = parseHeader(data, size-start)
	return entries, start, err
}

// parseHeader returns a header's tensors in the order of their data, of which there are dataBytes.
// Every range is within the data, has the size of its shape and overlaps no other.
func parseHeader(header []byte, dataBytes int64) ([]entry, error) {
	var tensors map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimRight(header, " \x00"), &tensors); err != nil {
		return nil, fmt.Errorf("not a safetensors file: the header is no JSON object: %s",
			files.JSONWords(err))
	}
	delete(tensors, "__metadata__")
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		var fields struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		fields.Offsets[1] = -1 // none
		if err := json.Unmarshal(tensors[name], &fields); err != nil {
			return nil, fmt.Errorf("tensor %q: the header is not as safetensors writes it: %s",
				name, files.JSONWords(err))
		}
		e := entry{name, fields.DType, fields.Shape, fields.Offsets[0], fields.Offsets[1]}
		if err := e.check(dataBytes); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, overlap(entries)
}

func (e *entry) check(dataBytes int64) error {
	if e.begin < 0 || e.end < e.begin {
		return fmt.Errorf("tensor %q: data_offsets [%d, %d] are no range", e.name, e.begin, e.end)
	}
	if e.end > dataBytes {
		return fmt.Errorf("tensor %q ends at byte %d of the data, the file has %d: truncated; "+
			"download it again", e.name, e.end, dataBytes)
	}
	each, known := elementBytes[e.dtype]
	if !known {
		return nil
	}
	want := uint64(each)
	for _, n := range e.shape {
		high, low := bits.Mul64(want, uint64(n))
		if n < 0 || high != 0 {
			return fmt.Errorf("tensor %q: shape %v is impossible", e.name, e.shape)
		}
		want = low
	}
	if uint64(e.end-e.begin) != want {
		return fmt.Errorf("tensor %q: %s %v needs %d bytes, its data_offsets [%d, %d] span %d",
			e.name, e.dtype, e.shape, want, e.begin, e.end, e.end-e.begin)
	}
	return nil
}

// overlap sorts by data and refuses two tensors that share bytes.
func overlap(entries []entry) error {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	for i := 1; i < len(entries); i++ {
		if a, b := &entries[i-1], &entries[i]; b.begin < a.end {
			return fmt.Errorf("tensors %q and %q overlap: data_offsets [%d, %d] and [%d, %d]",
				a.name, b.name, a.begin, a.end, b.begin, b.end)
		}
	}
	return nil
}
