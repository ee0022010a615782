package files

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Packed is the archive, in a folder of runs, of all runs without an archive of their own.
const Packed = "packed.zip"

// ArchiveEnding is the file name ending of the archive of one run.
const ArchiveEnding = ".zip"

// OpenArchive opens an archive. Errors name the path.
func OpenArchive(path string) (*zip.Reader, io.Closer, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	r, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: damaged: %w", path, err), f.Close())
	}
	return r, f, nil
}

// member is a file of an archive.
type member struct {
	fs.File
	archive io.Closer
}

func (m member) Close() error { return errors.Join(m.File.Close(), m.archive.Close()) }

// openMember opens RUNS/HASH/NAME as the file HASH/NAME of RUNS/HASH.zip or of RUNS/packed.zip. It
// returns absent if there is none.
func openMember(path string, absent error) (io.ReadCloser, error) {
	run := filepath.Dir(path)
	name := filepath.Base(run) + "/" + filepath.Base(path)
	for _, archive := range []string{run + ArchiveEnding, filepath.Join(filepath.Dir(run), Packed)} {
		r, closer, err := OpenArchive(archive)
		if err == nil {
			var f fs.File
			if f, err = r.Open(name); err == nil {
				return member{f, closer}, nil
			}
			closer.Close()
			if errors.Is(err, fs.ErrNotExist) { // a run is in one archive, whole
				return nil, absent
			}
			err = fmt.Errorf("%s: damaged: %w", archive, err)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, absent
}

// OpenRegular opens a file and refuses files that are not regular.
func OpenRegular(path string) (*os.File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
