package rows

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// MaxRecord is the longest record of a file, in bytes. The longest LongBench record is below
// 1 MiB; the limit keeps a file without line ends out of memory.
const MaxRecord = 64 << 20

// byteOrderMark is the UTF-8 byte order mark, which some editors write.
const byteOrderMark = "\xef\xbb\xbf"

// File is the text of a file, decompressed and without a byte order mark. Reading returns an Error
// for a record longer than MaxRecord.
type File struct {
	Name string // for messages

	text   *bufio.Reader
	closer []io.Closer
	lines  lines
}

// Reader reads the records of a file: the rows of a table below its header, or JSON objects in
// sequence or in lists.
type Reader struct {
	*File
	Names []string // columns, or the sorted keys of the first object
	line  int      // of the record last read
	table *table   // nil: JSON
	values
}

// NewReader returns the rows below a header or, after an opening bracket, JSON objects, of which
// there must be one.
func NewReader(f *File) (*Reader, error) {
	r := &Reader{File: f}
	if f.IsJSON() {
		return r, r.openValues()
	}
	return r, r.openTable()
}

// JSON reports whether the records are objects.
func (r *Reader) JSON() bool { return r.table == nil }

// Has reports whether there is a column, case-insensitive, of one of alternative names, a|b, or the
// first object has one of them.
func (r *Reader) Has(names string) bool {
	for name := range strings.SplitSeq(names, "|") {
		if r.JSON() && r.first.Value(name) != nil || !r.JSON() && r.column(name) >= 0 {
			return true
		}
	}
	return false
}

// Record returns the next object, or non-blank row, which is valid until the next call. The error
// is io.EOF at the end.
func (r *Reader) Record() (Record, error) {
	if r.JSON() {
		return r.object()
	}
	return r.row()
}

// Line returns the line on which the record last read begins.
func (r *Reader) Line() int { return r.line }

// Open reports whether the row last read is the last one and has no line end. A JSON value that is
// cut short is an error.
func (r *Reader) Open() bool {
	return !r.JSON() && r.lines.open(r.table.csv.InputOffset())
}

// Fault returns err as an error of the record last read: with the line of its key in an object, and
// in a list of objects with a key that begins with the index.
func (r *Reader) Fault(err error) *Error {
	e := &Error{Problem: err.Error()}
	var known *Error
	if errors.As(err, &known) {
		*e = *known
	}
	if e.File, e.Line = r.Name, r.line; r.JSON() {
		r.within(e)
	} else if r.Open() {
		e.Problem += " (last line, without a line end: the file seems cut short)"
	}
	return e
}

// Open opens the file at path, or standard input, compressed or not. again keeps the contents of a
// pipe so that it can be opened again.
func Open(path string, again bool) (*File, error) {
	open := files.Input
	if again {
		open = files.Again
	}
	from, err := open(path)
	if err != nil {
		return nil, err
	}
	f, err := New(files.Label(path), from)
	if err != nil {
		from.Close()
		return nil, err
	}
	f.closer = append(f.closer, from)
	return f, nil
}

// New returns the text from a reader, compressed or not.
func New(name string, from io.Reader) (*File, error) {
	unpacked, err := files.Unpack(from)
	if err != nil {
		return nil, &Error{File: name, Problem: err.Error()}
	}
	f := &File{Name: name, closer: []io.Closer{unpacked}, lines: lines{file: name, from: unpacked,
		most: MaxRecord}}
	f.text = bufio.NewReaderSize(&f.lines, 64<<10)
	mark, _ := f.text.Peek(len(byteOrderMark))
	if bytes.HasPrefix(mark, []byte("\xff\xfe")) || bytes.HasPrefix(mark, []byte("\xfe\xff")) {
		return nil, &Error{File: name, Problem: "text in UTF-16; save it as UTF-8"}
	}
	if string(mark) == byteOrderMark {
		f.text.Discard(len(mark))
		f.lines.skipped = int64(len(mark))
	}
	return f, nil
}

// Text returns a text in memory as a file, without a limit of its records.
func Text(name string, text []byte) *File {
	f := &File{Name: name, lines: lines{file: name, from: bytes.NewReader(text), most: len(text)}}
	f.text = bufio.NewReaderSize(&f.lines, 64<<10)
	return f
}

// Close closes what Open opened. It is idempotent.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.closer {
		errs = append(errs, c.Close())
	}
	f.closer = nil
	return errors.Join(errs...)
}

// IsJSON reports whether the text begins as JSON.
func (f *File) IsJSON() bool {
	head, _ := f.text.Peek(512) // an error recurs at the next read
	head = bytes.TrimSpace(head)
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}

// All reads the whole text, up to the size limit of package files.
func (f *File) All() ([]byte, error) {
	text, err := files.ReadAll(f.Name, f.text)
	var known *Error
	if errors.As(err, &known) {
		return nil, known
	}
	return text, err
}

// lines is text with tracked line ends. Offsets count from after the byte order mark.
type lines struct {
	file    string
	from    io.Reader
	most    int   // bytes of a record
	skipped int64 // bytes of a byte order mark
	read    int64 // bytes
	begin   int64 // of the present record
	last    byte
	before  int // line ends dropped from ends
	ends    []int64
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	if l.read-l.begin > int64(l.most) {
		return 0, &Error{File: l.file, Line: l.at(l.begin - l.skipped), Problem: fmt.Sprintf(
			"longer than %d bytes; is this a file with one request a line, or a list of requests?",
			l.most)}
	}
	n, err := l.from.Read(p)
	if err != nil && err != io.EOF {
		err = &Error{File: l.file, Line: l.at(l.read - l.skipped), Problem: err.Error()}
	}
	for rest, at := p[:n], l.read; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		l.ends = append(l.ends, at+int64(i))
		rest, at = rest[i+1:], at+int64(i)+1
	}
	if l.read += int64(n); n > 0 {
		l.last = p[n-1]
	}
	return n, err
}

// at returns the line of an offset, from 1.
func (l *lines) at(place int64) int {
	i, _ := slices.BinarySearch(l.ends, place+l.skipped)
	return l.before + i + 1
}

// drop forgets the line ends before an offset at which a record begins.
func (l *lines) drop(place int64) {
	l.begin = place + l.skipped
	i, _ := slices.BinarySearch(l.ends, l.begin)
	l.ends = slices.Delete(l.ends, 0, i)
	l.before += i
}

// open reports whether the text ends at an offset without a line end.
func (l *lines) open(place int64) bool { return place+l.skipped == l.read && l.last != '\n' }
