package live

import (
	"errors"

	"sparseserve/cuda"
)

// pinnedLeast is the smallest memory that is worth keeping.
const pinnedLeast = 64 << 20

// Pinned is a Machine that keeps large pinned memory which a device gives back, for the next device: pinning costs about 0.7 s a GiB. The zero
// value keeps nothing yet. The machine may be another one of the same process and GPU each time.
type Pinned struct {
	Machine
	Most int64 // bytes in all, lent or not; 0: no limit
	kept []pinnedMemory
}

type pinnedMemory struct {
	cuda.HostMemory
	pages cuda.HostPages
	lent  bool
}

// On makes p stand in front of a machine.
func (p *Pinned) On(m Machine) Machine {
	p.Machine = m
	return p
}

// HostAlloc implements Machine. Where there is no room for more, what is kept and not lent goes first.
func (p *Pinned) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	for i := range p.kept {
		if k := &p.kept[i]; !k.lent && k.pages == pages && int64(len(k.Bytes())) == bytes {
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
	if err != nil && p.idle() {
		if err = p.Release(); err == nil {
			m, err = p.Machine.HostAlloc(bytes, pages)
		}
	}
	if err == nil && bytes >= pinnedLeast {
		p.kept = append(p.kept, pinnedMemory{m, pages, true})
	}
	return m, err
}

// HostFree implements Machine.
func (p *Pinned) HostFree(m cuda.HostMemory) error {
	for i := range p.kept {
		if k := &p.kept[i]; k.lent && k.Ptr() == m.Ptr() {
			k.lent = false
			return nil
		}
	}
	return p.Machine.HostFree(m)
}

func (p *Pinned) idle() bool {
	for i := range p.kept {
		if !p.kept[i].lent {
			return true
		}
	}
	return false
}

func (p *Pinned) held() (bytes int64) {
	for i := range p.kept {
		bytes += int64(len(p.kept[i].Bytes()))
	}
	return bytes
}

// Release frees all that no device has.
func (p *Pinned) Release() error {
	var errs []error
	left := p.kept[:0]
	for _, k := range p.kept {
		if k.lent {
			left = append(left, k)
			continue
		}
		errs = append(errs, p.Machine.HostFree(k.HostMemory))
	}
	p.kept = left
	return errors.Join(errs...)
}
