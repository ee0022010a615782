package dsa

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
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

// A recording is the line recordingMagic, the shape as a line of JSON, a segment for each
// finished request, and the end:
//
//	segment  'R', id, prompt and output tokens and bytes as uint32, uint32, uint32, uint64,
//	         little-endian; then that many bytes of gzip
//	end      'E', number of segments as uint32
//
// A segment holds the decode steps in which the context has more blocks than are selected. A
// step begins with the number of tokens generated before it; the groups of the sparse layers
// follow in order. A group is stored in one of two forms: in full as 0, the number of
// candidates attended to, the number of candidates loaded and the candidates in order; or as a
// change from the step before: 1 + the number of dropped candidates, these candidates, the
// number of added candidates and these candidates. The second form needs ascending rows whose
// candidates are all attended to. All numbers are uvarints.
const (
	recordingMagic = "sparseserve selections 2\n"
	segmentMark    = 'R'
	endMark        = 'E'
	segmentBytes   = 1 + 4 + 4 + 4 + 8
	endBytes       = 1 + 4
)

// RecordingWriter writes a recording. It keeps the selections of unfinished requests in memory,
// compressed. Not safe for concurrent use.
type RecordingWriter struct {
	w        io.Writer
	shape    Shape
	open     map[int]*segmentWriter
	spare    []*segmentWriter
	segments uint32
	err      error
}

type segmentWriter struct {
	bytes bytes.Buffer
	zip   *gzip.Writer
	entry []byte
}

// NewRecordingWriter writes the header of a recording.
func NewRecordingWriter(w io.Writer, shape Shape) (*RecordingWriter, error) {
	text, err := json.Marshal(shape)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", recordingMagic, text)
	return &RecordingWriter{w: w, shape: shape, open: map[int]*segmentWriter{}}, err
}

// Step begins a decode step of a request after the given number of generated tokens, at least
// one. Call Add afterwards for every group of the sparse layers, in order; calls for other
// requests may come between.
func (r *RecordingWriter) Step(request, generated int) {
	s := r.segment(request)
	s.flush(r)
	s.entry = binary.AppendUvarint(s.entry, uint64(generated))
}

// Add records a group's selection in the step; follows reports whether its changes are from the
// step before.
func (r *RecordingWriter) Add(request int, row Picks, follows bool) {
	s := r.segment(request)
	if !follows || row.Used < len(row.Next) || r.shape.Microbatch > 0 {
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

func (s *segmentWriter) put(values ...int) {
	for _, v := range values {
		s.entry = binary.AppendUvarint(s.entry, uint64(v))
	}
}

// Finish writes a request's segment.
func (r *RecordingWriter) Finish(request, prompt, output int) error {
	s := r.segment(request)
	delete(r.open, request)
	s.flush(r)
	if err := s.zip.Close(); err != nil && r.err == nil {
		r.err = err
	}
	head := make([]byte, 0, segmentBytes)
	head = append(head, segmentMark)
	for _, v := range []int{request, prompt, output} {
		head = binary.LittleEndian.AppendUint32(head, uint32(v))
	}
	r.write(binary.LittleEndian.AppendUint64(head, uint64(s.bytes.Len())))
	r.write(s.bytes.Bytes())
	r.segments++
	s.bytes.Reset()
	r.spare = append(r.spare, s)
	return r.err
}

// Close ends the recording. Unfinished requests are not written.
func (r *RecordingWriter) Close() error {
	r.write(binary.LittleEndian.AppendUint32([]byte{endMark}, r.segments))
	return r.err
}

func (r *RecordingWriter) write(b []byte) {
	if r.err == nil {
		_, r.err = r.w.Write(b)
	}
}

func (r *RecordingWriter) segment(request int) *segmentWriter {
	if s := r.open[request]; s != nil {
		return s
	}
	var s *segmentWriter
	if n := len(r.spare); n > 0 {
		s, r.spare = r.spare[n-1], r.spare[:n-1]
		s.zip.Reset(&s.bytes)
	} else {
		s = &segmentWriter{}
		s.zip, _ = gzip.NewWriterLevel(&s.bytes, gzip.BestSpeed) // the level is valid: no error
	}
	r.open[request] = s
	return s
}

// flush compresses the last step.
func (s *segmentWriter) flush(r *RecordingWriter) {
	if _, err := s.zip.Write(s.entry); err != nil && r.err == nil {
		r.err = err
	}
	s.entry = s.entry[:0]
}
