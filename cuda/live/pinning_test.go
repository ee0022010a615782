package live_test

import (
	"sync"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// pinning is a machine that records the host memory it has allocated.
type pinning struct {
	live.Machine
	mu     sync.Mutex // memory is asked for by one thread and written by another
	pinned []cuda.HostMemory
}

func (p *pinning) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	m, err := p.Machine.HostAlloc(bytes, pages)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinned = append(p.pinned, m)
	return m, err
}

// on returns the pinned memory that an address is in, from there on in words; nil: it is elsewhere.
// The caller holds the lock.
func (p *pinning) on(at cuda.Ptr) []int64 {
	for _, m := range p.pinned {
		if at >= m.Ptr() && at < m.Ptr()+cuda.Ptr(len(m.Bytes())) {
			return cuda.Slice[int64](m)[(at-m.Ptr())/8:]
		}
	}
	return nil
}
