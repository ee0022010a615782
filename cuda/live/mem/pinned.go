package mem

import (
	"errors"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

// pinnedLeast is the minimum size of memory that is kept.
const pinnedLeast = 64 << 20

// Pinned is a machine that keeps large pinned memory that a device frees, for the next device,
// because pinning takes most of a second per GiB. The zero value is empty. The machine in use may
// be another one of the same process and GPU each time.
type Pinned struct {
	cuda.Machine
	Most int64 // bytes in all, lent or not; 0: no limit
	kept []pinnedMemory
}

type pinnedMemory struct {
	cuda.HostMemory
	pages cuda.HostPages
	lent  bool
}

// On puts p in front of a machine.
func (p *Pinned) On(m cuda.Machine) cuda.Machine {
	p.Machine = m
	return p
}

// HostAlloc implements cuda.Machine. If Most would be exceeded, it first frees kept memory that is
// not in use.
func (p *Pinned) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	for i := range p.kept {
		k := &p.kept[i]
		if !k.lent && k.pages == pages && int64(len(k.Bytes())) == bytes {
			k.lent = true
			return k.HostMemory, nil
		}
	}
	if p.Most > 0 && p.held()+bytes > p.Most {
		if err := p.Release(); err != nil {
			return cuda.HostMemory{}, err
		}
	}
	m, err := p.Machine.HostAlloc(bytes, pages)
	idle := slices.ContainsFunc(p.kept, func(k pinnedMemory) bool { return !k.lent })
	if err != nil && idle {
		if err = p.Release(); err == nil {
			m, err = p.Machine.HostAlloc(bytes, pages)
		}
	}
	if err == nil && bytes >= pinnedLeast {
		p.kept = append(p.kept, pinnedMemory{m, pages, true})
	}
	return m, err
}

// HostFree implements cuda.Machine.
func (p *Pinned) HostFree(m cuda.HostMemory) error {
	for i := range p.kept {
		if k := &p.kept[i]; k.lent && k.Ptr() == m.Ptr() {
			k.lent = false
			return nil
		}
	}
	return p.Machine.HostFree(m)
}

func (p *Pinned) held() (bytes int64) {
	for i := range p.kept {
		bytes += int64(len(p.kept[i].Bytes()))
	}
	return bytes
}

// Release frees all memory that no device uses.
func (p *Pinned) Release() error {
	var errs []error
	p.kept = slices.DeleteFunc(p.kept, func(k pinnedMemory) bool {
		if !k.lent {
			errs = append(errs, p.Machine.HostFree(k.HostMemory))
		}
		return !k.lent
	})
	return errors.Join(errs...)
}
