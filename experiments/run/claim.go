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

// LockFolder locks a folder by a file in it, until the file is closed or the process ends.
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

// Claim makes a run of a folder this process's own until release, which is nil when another process
// makes it. The hash names the run.
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

// Shared is one of several processes with one store that do the same things.
type Shared struct {
	Task, Tasks int // a task has a number below Tasks, or from 1 to Tasks
}

// sharedPoll is how often a process looks whether another one has ended.
const sharedPoll = 200 * time.Millisecond

// Each does every thing, named by a hash: first, from a place of its own, those that no other
// process does, then the others', whose runs it finds in the store, or makes where a process was
// killed. Where the file system has no locks, every process makes all.
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
