package mem

import (
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/cuda"
)

// Owner is a machine whose Close frees all remaining allocations made through it, the newest first.
// Its methods may be called from several threads.
type Owner struct {
	cuda.Machine
	mu   sync.Mutex
	held []any // cuda.Ptr, cuda.HostMemory, cuda.Stream, cuda.Event or cuda.Saver
}

// own records a handle that was allocated without an error.
func own[T any](o *Owner, handle T, err error) (T, error) {
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.held = append(o.held, handle)
	}
	return handle, err
}

// disown frees a handle.
func (o *Owner) disown(handle any) error {
	o.mu.Lock()
	if i := slices.Index(o.held, handle); i >= 0 {
		o.held = slices.Delete(o.held, i, i+1)
	}
	o.mu.Unlock()
	switch h := handle.(type) {
	case cuda.Ptr:
		return o.Machine.DeviceFree(h)
	case cuda.HostMemory:
		return o.Machine.HostFree(h)
	case cuda.Stream:
		return o.Machine.StreamDestroy(h)
	case cuda.Event:
		return o.Machine.EventDestroy(h)
	}
	return o.Machine.SaverDestroy(handle.(cuda.Saver))
}

// Close frees all and returns the first error.
func (o *Owner) Close() error {
	var first error
	for len(o.held) > 0 {
		if err := o.disown(o.held[len(o.held)-1]); first == nil {
			first = err
		}
	}
	return first
}

func (o *Owner) DeviceAlloc(bytes int64) (cuda.Ptr, error) {
	p, err := o.Machine.DeviceAlloc(bytes)
	return own(o, p, err)
}

func (o *Owner) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	m, err := o.Machine.HostAlloc(bytes, pages)
	return own(o, m, err)
}

func (o *Owner) StreamCreate(highPriority bool) (cuda.Stream, error) {
	s, err := o.Machine.StreamCreate(highPriority)
	return own(o, s, err)
}

func (o *Owner) EventCreate(timed bool) (cuda.Event, error) {
	e, err := o.Machine.EventCreate(timed)
	return own(o, e, err)
}

func (o *Owner) SaverCreate(threads int, chunkBytes int64, stages int) (cuda.Saver, error) {
	s, err := o.Machine.SaverCreate(threads, chunkBytes, stages)
	return own(o, s, err)
}

func (o *Owner) DeviceFree(p cuda.Ptr) error       { return o.disown(p) }
func (o *Owner) HostFree(m cuda.HostMemory) error  { return o.disown(m) }
func (o *Owner) StreamDestroy(s cuda.Stream) error { return o.disown(s) }
func (o *Owner) EventDestroy(e cuda.Event) error   { return o.disown(e) }
