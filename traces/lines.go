package traces

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line of a trace file, in bytes. The longest LongBench record is below
// 1 MiB; the limit keeps a file without line ends out of memory.
const MaxLine = 64 << 20

// LineError is a fault in one line of a trace file.
type LineError struct {
	File    string
	Line    int    // from 1; 0 when it concerns the whole file
	Key     string // column or JSON key; may be empty
	Value   string // as written in the file; may be empty
	Problem string // what is wrong and what to do
}

// Error returns FILE:LINE: KEY = "VALUE": PROBLEM.
func (e *LineError) Error() string {
	msg := e.File
	if e.Line > 0 {
		msg = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	switch {
	case e.Key != "" && e.Value != "":
		msg += fmt.Sprintf(": %s = %q", e.Key, short(e.Value))
	case e.Key != "":
		msg += ": " + e.Key
	case e.Value != "":
		msg += fmt.Sprintf(": %q", short(e.Value))
	}
	return msg + ": " + e.Problem
}

// lines reads a file line by line into one buffer that is used again.
type lines struct {
	file    string
	r       *bufio.Reader
	buf     []byte
	limit   int  // bytes of a line, line end included
	number  int  // of the line last returned, from 1
	ended   bool // the line last returned had a line end
	pending bool // next returns the same line again
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file: file, r: bufio.NewReaderSize(r, 64<<10), limit: MaxLine, ended: true}
}

// next returns the next line that is not blank, without its line end, valid until the call
// after; io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	if l.pending {
		l.pending = false
		return l.buf, nil
	}
	for {
		if err := l.read(); err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(l.buf)) > 0 {
			return l.buf, nil
		}
	}
}

// unread makes the next call of next return the line last returned.
func (l *lines) unread() { l.pending = true }

func (l *lines) read() error {
	l.buf = l.buf[:0]
	l.number++
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		if len(l.buf) > l.limit {
			return &LineError{File: l.file, Line: l.number,
				Problem: fmt.Sprintf(
					"line is longer than %d bytes; is this a text file with one request a line?", l.limit)}
		}
		switch {
		case err == nil:
			l.trim()
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(l.buf) > 0:
			l.ended = false
			l.trim()
			return nil
		case err == io.EOF:
			l.number--
			return io.EOF
		default:
			return fmt.Errorf("%s:%d: %w", l.file, l.number, err)
		}
	}
}

// trim drops the line end, and the byte order mark that some editors put first.
func (l *lines) trim() {
	l.buf = bytes.TrimRight(l.buf, "\r\n")
	if l.number == 1 {
		l.buf = bytes.TrimPrefix(l.buf, []byte(byteOrderMark))
	}
}
