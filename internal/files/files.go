// Package files opens what users name: never does a FIFO without a writer, or a device without an
// end, stop the program.
package files

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// mostText is the size of the largest configuration, model or pattern file, in bytes.
const mostText = 64 << 20

// Open opens a file for reading. A FIFO that nobody writes to is empty.
func Open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReadText reads a configuration, or another text that is small.
func ReadText(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err == nil && len(text) > mostText {
		err = fmt.Errorf("%s: more than %d MiB, the most of a configuration, a model or a pattern file",
			path, mostText>>20)
	}
	if info, e := f.Stat(); err == nil && len(text) == 0 && e == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: empty; nothing was written to it", path)
	}
	return text, err
}
