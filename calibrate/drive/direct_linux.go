package drive

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openDirect opens a file past the page cache. Files in memory (tmpfs) are not on a drive.
func openDirect(path string, flags int) (*os.File, error) {
	var s unix.Statfs_t
	if unix.Statfs(filepath.Dir(path), &s) == nil && s.Type == unix.TMPFS_MAGIC {
		return nil, errors.New("it is in memory (tmpfs)")
	}
	return os.OpenFile(path, flags|unix.O_DIRECT, 0o600)
}

// drop has the kernel forget what it keeps of a file, as some file systems do past O_DIRECT.
func drop(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// capacity is the bytes of the file system that a folder is on.
func capacity(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Blocks) * s.Bsize, nil
}

// aligned is memory that begins at a page, as reads past the page cache want it.
func aligned(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func free(b []byte) error { return unix.Munmap(b) }
