package dsa

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strconv"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// Shape is the configuration of a recording of selections. A replay needs the same
// configuration. Tag key names what sets a field.
type Shape struct {
	Layers       int `json:"layers" key:"layers"`
	KVHeads      int `json:"kv_heads" key:"KV heads"`
	DenseLayers  int `json:"dense_layers" key:"selection.dense_layers"`
	BlockTokens  int `json:"block_tokens" key:"system.block_tokens"`
	SinkBlocks   int `json:"sink_blocks" key:"selection.sink_blocks"`
	WindowBlocks int `json:"window_blocks" key:"selection.recent_blocks"`
	// candidates selected in addition to sinks and window; for a threshold policy, the microbatch
	Candidates int    `json:"candidates" key:"blocks of selection.budget_tokens to choose"`
	Seed       uint64 `json:"seed" key:"seed"`

	Selection  string  `json:"selection" key:"selection.policy"` // name of the algorithm
	Epsilon    float64 `json:"epsilon,omitempty" key:"selection.epsilon"`
	Microbatch int     `json:"microbatch,omitempty" key:"selection.microbatch"`
	Pipelined  bool    `json:"pipelined,omitempty" key:"selection.pipelined"`
	HeadStops  bool    `json:"head_stops,omitempty" key:"selection.stop by head"`
}

// Same returns an error if the shape of a run differs from the recording's.
func (s Shape) Same(now Shape) error {
	was, is := reflect.ValueOf(s), reflect.ValueOf(now)
	for i := range was.NumField() {
		if a, b := was.Field(i), is.Field(i); !a.Equal(b) {
			return fmt.Errorf("%s: %v when selections were recorded, %v now",
				was.Type().Field(i).Tag.Get("key"), a, b)
		}
	}
	return nil
}

// groups is the number of (layer, KV head) pairs that select.
func (s *Shape) groups() int { return (s.Layers - s.DenseLayers) * s.KVHeads }

// RecordingWriter writes a recording: a ZIP archive of a file for each finished request, named by
// its number. The comment of the archive is the shape in JSON, that of a file tokensOf.
//
// A file holds the decode steps in which the context has more blocks than are selected. A
// step begins with the number of tokens generated before it; the groups of the sparse layers
// follow in order. A group is stored in one of two forms: in full as 0, the number of
// candidates attended to, the number of candidates loaded and the candidates in order; or as a
// change from the step before: 1 + the number of dropped candidates, these candidates, the
// number of added candidates and these candidates. The second form needs ascending rows whose
// candidates are all attended to. All numbers are uvarints.
//
// The writer keeps the selections of unfinished requests in memory, compressed. Not safe for
// concurrent use.
type RecordingWriter struct {
	archive *zip.Writer
	shape   Shape
	open    map[int]*segment
	spare   []*segment
}

// segment is the selections of one request.
type segment struct {
	bytes bytes.Buffer
	pack  *flate.Writer
	sum   uint32
	size  int
	entry []byte // the newest step, not packed yet
}

// tokensOf identifies a request by its prompt and output tokens.
func tokensOf(prompt, output int) string {
	return fmt.Sprintf("%d prompt and %d output", prompt, output)
}

// NewRecordingWriter begins a recording.
func NewRecordingWriter(w io.Writer, shape Shape) *RecordingWriter {
	return &RecordingWriter{archive: zip.NewWriter(w), shape: shape, open: map[int]*segment{}}
}

// Step begins a decode step of a request after the given number of generated tokens, at least
// one. Call Add afterwards for every group of the sparse layers, in order; calls for other
// requests may come between.
func (r *RecordingWriter) Step(request, generated int) {
	s := r.segment(request)
	s.flush()
	s.entry = binary.AppendUvarint(s.entry, uint64(generated))
}

// Add records a group's selection in the step.
func (r *RecordingWriter) Add(request int, row *kv.Picks) {
	s := r.segment(request)
	if !row.Follows || row.Used < len(row.Next) || r.shape.Microbatch > 0 {
		s.put(0, row.Used, len(row.Next))
		for _, b := range row.Next {
			s.put(int(b))
		}
		return
	}
	s.put(1 + len(row.Dropped))
	for _, b := range row.Dropped {
		s.put(int(b))
	}
	s.put(len(row.Added))
	for _, i := range row.Added {
		s.put(int(row.Next[i]))
	}
}

func (s *segment) put(values ...int) {
	for _, v := range values {
		s.entry = binary.AppendUvarint(s.entry, uint64(v))
	}
}

// Finish writes a request's file.
func (r *RecordingWriter) Finish(request, prompt, output int) error {
	s := r.segment(request)
	delete(r.open, request)
	s.flush()
	s.pack.Close() // into memory: no error
	w, err := r.archive.CreateRaw(&zip.FileHeader{Name: strconv.Itoa(request),
		Comment: tokensOf(prompt, output), Method: zip.Deflate, CRC32: s.sum,
		CompressedSize64: uint64(s.bytes.Len()), UncompressedSize64: uint64(s.size)})
	if err == nil {
		_, err = w.Write(s.bytes.Bytes())
	}
	r.spare = append(r.spare, s)
	return err
}

// Close ends the recording. Unfinished requests are not written.
func (r *RecordingWriter) Close() error {
	shape, err := json.Marshal(r.shape)
	if err == nil {
		err = r.archive.SetComment(string(shape))
	}
	if err != nil {
		return err
	}
	return r.archive.Close()
}

func (r *RecordingWriter) segment(request int) *segment {
	s := r.open[request]
	if s != nil {
		return s
	}
	if n := len(r.spare); n > 0 {
		s, r.spare = r.spare[n-1], r.spare[:n-1]
		s.bytes.Reset()
		s.pack.Reset(&s.bytes)
		s.sum, s.size = 0, 0
	} else {
		s = &segment{}
		s.pack, _ = flate.NewWriter(&s.bytes, flate.BestSpeed) // the level is valid: no error
	}
	r.open[request] = s
	return s
}

// flush packs the newest step.
func (s *segment) flush() {
	s.pack.Write(s.entry) // into memory: no error
	s.sum, s.size = crc32.Update(s.sum, crc32.IEEETable, s.entry), s.size+len(s.entry)
	s.entry = s.entry[:0]
}
