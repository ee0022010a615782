package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLocked is the error of a folder that another process writes to.
var ErrLocked = errors.New("another process is writing here; wait for it to end or choose " +
	"another folder")

// LockFolder locks a folder through a file in it, until the file is closed or the process ends.
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

// Claim claims a run in a folder, named by its hash, for this process until release is called.
// release is nil if another process has claimed the run.
func Claim(dir, hash string) (release func() error, err error) {
	path := filepath.Join(dir, "."+hash+".lock")
	for {
		f, err := LockFolder(path, true)
		if errors.Is(err, ErrLocked) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		if err := f.Close(); err != nil { // who held it has removed it since it was opened
			return nil, err
		}
	}
}

// Shared identifies one of several processes that share a store and do the same work.
type Shared struct {
	Task, Tasks int // a task has a number below Tasks, or from 1 to Tasks
}

// sharedPoll is the interval between checks whether another process has ended.
const sharedPoll = 200 * time.Millisecond

// Each does all work items, named by hashes. It starts at its own offset with the items that no
// other process has claimed. Then it does the remaining items, whose runs it finds in the store, or
// makes if a process was killed. Without file locks every process makes all items.
func (s *Store) Each(ctx context.Context, shared Shared, hashes []string,
	do func(context.Context, int) error) error {
	var left []int
	for i := range hashes {
		left = append(left, (i+shared.Task%shared.Tasks*len(hashes)/shared.Tasks)%len(hashes))
	}
	for len(left) > 0 {
		var others []int
		for _, i := range left {
			release, err := Claim(s.dir, hashes[i])
			if err == nil && release == nil {
				others = append(others, i)
				continue
			}
			if err == nil {
				err = errors.Join(do(ctx, i), release())
			}
			if err != nil {
				return err
			}
		}
		if len(others) == len(left) {
			select {
			case <-time.After(sharedPoll):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		left = others
	}
	return nil
}
