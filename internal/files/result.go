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

// OpenResult opens a file that a command has made, be it in the archive of its run: for
// RUNS/HASH/NAME, where there is no such folder, the file HASH/NAME of RUNS/HASH.zip or
// RUNS/packed.zip. It refuses what is not a regular file.
func OpenResult(path string) (io.ReadCloser, error) {
	f, err := OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return openMember(path, err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// HasResult reports whether OpenResult finds a file.
func HasResult(path string) bool {
	f, err := OpenResult(path)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
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
