// Package files opens files that users name. A FIFO without a writer, or an endless device, never
// blocks the program.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// mostText is the maximum size of a configuration, model or pattern file, in bytes.
const mostText = 64 << 20

// Open opens a file for reading. A FIFO without a writer is empty.
func Open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReadText reads a configuration, or another small text.
func ReadText(path string) ([]byte, error) {
	f, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if f, e := openMember(path, err); e == nil {
			defer f.Close()
			return readLimited(path, f, mostText)
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readLimited(path, f, mostText)
	if info, e := f.Stat(); err == nil && len(text) == 0 && e == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: empty; nothing was written to it", path)
	}
	return text, err
}
