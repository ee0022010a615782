package emulator

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sparseserve/sparseserve/cuda"
)

// place is the owner of a region's memory. Pinned memory is also the device's.
type place int

const (
	onDevice place = iota
	onHost
)

func (p place) String() string { return [...]string{"device", "pinned"}[p] }

// region is one allocation. Its address range is never reused, so an access after its free is
// detected.
type region struct {
	at     cuda.Ptr // address of data[0]
	data   []byte
	mapped []byte // data in whole pages
	on     place
	freed  bool
}

// memory holds all regions by address, including freed ones.
type memory struct {
	regions []*region
	held    [2]int64 // bytes by place
}

// poison makes every fp16 value NaN that is read before it was written, and no plausible index or
// address of an integer.
const poison = 0x7e

// poisoned is a file of poison that memory maps copy on write: a page costs nothing until it is
// written.
var poisoned = sync.OnceValues(func() (*os.File, error) {
	f, err := os.CreateTemp("", "poison-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(bytes.Repeat([]byte{poison}, poisonedBytes))
	return f, cmp.Or(err, os.Remove(f.Name()))
})

const poisonedBytes = 16 << 20

func (m *memory) alloc(call string, size int64, on place) (*region, error) {
	page := int64(unix.Getpagesize())
	mapped, err := unix.Mmap(-1, 0, int((size+page-1)/page*page), unix.PROT_NONE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, failure(call, cuda.OutOfMemory, "%d bytes: %v", size, err)
	}
	if err := poisonAll(mapped); err != nil {
		return nil, failure(call, cuda.Failed, "%v", cmp.Or(err, unix.Munmap(mapped)))
	}
	r := &region{at: cuda.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(mapped)))),
		data: mapped[:size:size], mapped: mapped, on: on}
	m.regions = slices.Insert(m.regions, m.after(r.at), r)
	m.held[on] += size
	return r, nil
}

// poisonAll maps poison over all of a mapping.
func poisonAll(mapped []byte) error {
	from, err := poisoned()
	if err != nil {
		return err
	}
	for part := range slices.Chunk(mapped, poisonedBytes) {
		_, err := unix.MmapPtr(int(from.Fd()), 0, unsafe.Pointer(&part[0]), uintptr(len(part)),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
		if err != nil {
			return err
		}
	}
	return nil
}

// free returns the pages and keeps their addresses inaccessible.
func (m *memory) free(call string, r *region) error {
	r.freed = true
	m.held[r.on] -= int64(len(r.data))
	err := cmp.Or(unix.Madvise(r.mapped, unix.MADV_DONTNEED), unix.Mprotect(r.mapped,
		unix.PROT_NONE))
	if err != nil {
		return failure(call, cuda.Failed, "%v", err)
	}
	return nil
}

// close unmaps everything, including freed ranges.
func (m *memory) close() {
	for _, r := range m.regions {
		unix.Munmap(r.mapped) // fails only for an address that is no mapping
	}
	*m = memory{}
}

// after returns how many regions start at or below p.
func (m *memory) after(p cuda.Ptr) int {
	i, found := slices.BinarySearchFunc(m.regions, p, func(r *region, p cuda.Ptr) int {
		if r.at < p {
			return -1
		} else if r.at > p {
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	return i
}

// find returns the region with the largest address not above p; p may be past its end.
func (m *memory) find(p cuda.Ptr) *region {
	if i := m.after(p); i > 0 {
		return m.regions[i-1]
	}
	return nil
}
