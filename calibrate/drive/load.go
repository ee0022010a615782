package drive

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Sizes of reads and writes.
const (
	page  = 4 << 10 // of random reads that are counted
	chunk = 1 << 20 // of those whose bytes are, and of writes
)

// stamp fills a buffer with noise, because drives may compress, and writes the file offset of each
// page into it.
func stamp(b []byte, at int64, noise *rand.ChaCha8) {
	_, _ = noise.Read(b) // it never fails
	for i := 0; i < len(b); i += page {
		binary.LittleEndian.PutUint64(b[i:], uint64(at)+uint64(i))
	}
}

// verify returns an error if a buffer does not hold the pages at an offset of the file.
func verify(b []byte, at int64) error {
	for i := 0; i < len(b); i += page {
		if got := binary.LittleEndian.Uint64(b[i:]); got != uint64(at)+uint64(i) {
			return fmt.Errorf("the page at %d is that of %d", at+int64(i), got)
		}
	}
	return nil
}

// workers runs n workers concurrently, each with its own buffer, and returns the total time.
func workers(ctx context.Context, n, bytes int, work func(ctx context.Context, worker int,
	b []byte) error) (time.Duration, error) {
	memory := make([][]byte, n)
	defer func() {
		for _, b := range memory {
			if b != nil {
				_ = free(b) // of this process alone
			}
		}
	}()
	for i := range memory {
		b, err := aligned(bytes)
		if err != nil {
			return 0, err
		}
		memory[i] = b
	}
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i, b := range memory {
		group.Go(func() error { return work(ctx, i, b) })
	}
	err := group.Wait()
	return time.Since(began), err
}

// write fills a file with the given bytes, depth chunks at a time, and returns bytes per second
// until all data is on the drive.
func write(ctx context.Context, f *os.File, bytes int64, depth int) (rate float64, err error) {
	var next atomic.Int64
	took, err := workers(ctx, depth, chunk, func(ctx context.Context, worker int, b []byte) error {
		noise := rand.NewChaCha8([32]byte{byte(worker)})
		for at := next.Add(chunk) - chunk; at < bytes; at = next.Add(chunk) - chunk {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			stamp(b, at, noise)
			if _, err := f.WriteAt(b, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return float64(bytes) / (took + time.Since(began)).Seconds(), nil
}

// read reads at random offsets for the duration each, keeping depth reads of the given bytes in
// flight, and returns reads per second.
func read(ctx context.Context, f *os.File, fileBytes int64, bytes, depth int,
	each time.Duration) (rate float64, err error) {
	var done atomic.Int64
	until := time.Now().Add(each)
	took, err := workers(ctx, depth, bytes, func(ctx context.Context, worker int, b []byte) error {
		places := rand.New(rand.NewPCG(uint64(worker), uint64(bytes)))
		for ctx.Err() == nil && time.Now().Before(until) {
			at := places.Int64N(fileBytes/int64(bytes)) * int64(bytes)
			if _, err := f.ReadAt(b, at); err != nil {
				return err
			}
			if err := verify(b, at); err != nil {
				return err
			}
			done.Add(1)
		}
		return context.Cause(ctx)
	})
	return float64(done.Load()) / took.Seconds(), err
}
