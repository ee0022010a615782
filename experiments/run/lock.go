package run

import (
	"errors"
	"os"
	"syscall"
)

var ErrLocked = errors.New("another process is writing here; wait for it to end or choose another folder")

// lockFolder locks a folder by a file in it, until the file is closed or the
// process ends.
func LockFolder(path string, alone bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if err == nil || errors.Is(err, syscall.ENOLCK) || errors.Is(err, errors.ErrUnsupported) {
		return f, nil // some network file systems have no locks
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(err, f.Close())
}
