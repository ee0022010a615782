package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// mostResult is the maximum unpacked size of a file that ReadResult reads, in bytes.
const mostResult = 1 << 30

// OpenResult opens a file that a command made, also inside the archive of its run: for
// RUNS/HASH/NAME without such a folder it opens HASH/NAME in RUNS/HASH.zip or RUNS/packed.zip. It
// refuses files that are not regular.
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

// HasResult reports whether OpenResult would find a file.
func HasResult(path string) bool {
	f, err := OpenResult(path)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// ReadResult reads a file that a command made, and unpacks it if it is packed.
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

// ReadAll reads a stream to its end. Messages use name.
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

// Glob lists the files of a folder whose names match a pattern. The folder's own name is not a
// pattern.
func Glob(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	for i := range names {
		names[i] = filepath.Join(dir, names[i])
	}
	return names, err
}
