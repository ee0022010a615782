package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Options configure the measurement of a drive.
type Options struct {
	Folder string        // on the drive; a file is made there, without a name
	Bytes  int64         // of that file, whole chunks of 1 MiB
	Each   time.Duration // for each queue depth and size of reads
	Depths []int         // reads that wait at once, rising
	Log    func(string)  // what is measured next; may be nil
}

// Depths returns the queue depths that are measured.
func Depths() []int { return []int{1, 2, 4, 8, 16, 32, 64, 128} }

// Found is the result, in SI units.
type Found struct {
	Size   int64   // bytes of the file system
	Write  float64 // bytes/s, one chunk after another, many waiting
	Depths []Depth
}

// Depth is the read performance at one queue depth.
type Depth struct {
	Depth int
	Reads float64 // of 4 KiB, a second
	Rate  float64 // bytes/s, of 1 MiB
}

// writeDepth is the queue depth of writes, enough to keep a drive busy.
const writeDepth = 32

// Measure measures the drive that a folder is on.
func Measure(ctx context.Context, o Options) (found *Found, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", o.Folder, err)
		}
	}()
	if o.Bytes < chunk || o.Bytes%chunk != 0 {
		return nil, fmt.Errorf("a file of %d bytes: want whole chunks of 1 MiB", o.Bytes)
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	found = &Found{}
	if found.Size, err = capacity(o.Folder); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Folder, ".sparseserve-drive-*")
	if err != nil {
		return nil, err
	}
	f, err := openDirect(filepath.Join(dir, "probe"), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	removed := os.RemoveAll(dir) // now, so that nothing stays whatever ends the process
	if err != nil {
		return nil, errors.Join(fmt.Errorf("this folder allows no file past the page cache "+
			"(O_DIRECT); name a folder on the drive: %w", err), removed)
	}
	defer func() { err = errors.Join(err, f.Close(), removed) }()
	return found, o.measure(ctx, f, found)
}

func (o *Options) measure(ctx context.Context, f *os.File, found *Found) (err error) {
	o.Log(fmt.Sprintf("writes of 1 MiB, %d MiB in all", o.Bytes>>20))
	if found.Write, err = write(ctx, f, o.Bytes, writeDepth); err != nil {
		return err
	}
	if err := drop(f); err != nil {
		return err
	}
	for _, depth := range o.Depths {
		o.Log(fmt.Sprintf("reads of 4 KiB and of 1 MiB, %d waiting", depth))
		d := Depth{Depth: depth}
		if d.Reads, err = read(ctx, f, o.Bytes, page, depth, o.Each); err != nil {
			return err
		}
		chunks, err := read(ctx, f, o.Bytes, chunk, depth, o.Each)
		if err != nil {
			return err
		}
		d.Rate = chunks * chunk
		found.Depths = append(found.Depths, d)
	}
	return nil
}
