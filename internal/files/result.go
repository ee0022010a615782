package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// mostResult is the size of the largest file that ReadResult reads, unpacked, in bytes.
const mostResult = 1 << 30

// OpenResult opens a file that a command has made. It refuses what is not a regular file.
func OpenResult(path string) (*os.File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadResult reads a file that a command has made, and unpacks it if it is packed.
func ReadResult(path string) ([]byte, error) {
	f, err := OpenResult(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := Unpack(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer text.Close()
	return ReadAll(path, text)
}

// ReadAll reads a stream, which messages call name, to its end.
func ReadAll(name string, from io.Reader) ([]byte, error) {
	return readLimited(name, from, mostResult)
}

func readLimited(name string, from io.Reader, most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("more than %d MiB", most>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// Glob lists the files of a folder whose names match a pattern. What the folder is called has no
// part in it.
func Glob(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	for i := range names {
		names[i] = filepath.Join(dir, names[i])
	}
	return names, err
}
