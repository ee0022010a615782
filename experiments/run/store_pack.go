package run

import (
	"archive/zip"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/internal/files"
)

// archiveFolder writes the files of a folder into an archive, below the name under. Equal files
// give an archive of equal bytes.
func archiveFolder(path, under, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	return writeArchive(path, func(w *zip.Writer) error {
		for _, e := range entries {
			if err := addFile(w, under+"/"+e.Name(), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
		return nil
	})
}

// addFile adds a file to an archive.
func addFile(w *zip.Writer, name, path string) error {
	from, err := files.OpenRegular(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err == nil {
		_, err = io.Copy(to, from)
	}
	return err
}

// writeArchive writes an archive atomically.
func writeArchive(path string, fill func(*zip.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	w := zip.NewWriter(f)
	if err := errors.Join(fill(w), w.Close()); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// Pack moves all runs into one archive. The store must have been opened alone. Only Close
// may be called afterwards.
func (s *Store) Pack() error {
	runs, err := files.Glob(s.dir, "[0-9a-f]*"+files.ArchiveEnding)
	if err != nil || len(runs)+len(s.forgotten) == 0 {
		return err
	}
	replaced := map[string]bool{} // by hash
	for hash := range s.forgotten {
		replaced[hash] = true
	}
	for _, path := range runs {
		replaced[strings.TrimSuffix(filepath.Base(path), files.ArchiveEnding)] = true
	}
	parts := s.packedParts(replaced)
	for _, path := range runs {
		hash := strings.TrimSuffix(filepath.Base(path), files.ArchiveEnding)
		parts = append(parts, part{hash + "/", func(w *zip.Writer) error { return copyArchive(w, path) }})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	err = writeArchive(filepath.Join(s.dir, files.Packed), func(w *zip.Writer) error {
		for _, p := range parts {
			if err := p.add(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return KeptWhenFull(err)
	}
	for _, path := range runs {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// part is one member of an archive, in the order of names.
type part struct {
	name string
	add  func(*zip.Writer) error
}

// packedParts lists the packed members, except runs that are replaced.
func (s *Store) packedParts(replaced map[string]bool) (parts []part) {
	if s.packed == nil {
		return nil
	}
	for _, f := range s.packed.File {
		if of, _, _ := strings.Cut(f.Name, "/"); !replaced[of] {
			parts = append(parts, part{f.Name, func(w *zip.Writer) error { return w.Copy(f) }})
		}
	}
	return parts
}

// copyArchive copies the archive of a run. It omits a damaged archive.
func copyArchive(w *zip.Writer, path string) error {
	r, file, err := files.OpenArchive(path)
	if errors.Is(err, zip.ErrFormat) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for _, f := range r.File {
		err = errors.Join(err, w.Copy(f))
	}
	return err
}
