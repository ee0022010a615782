package live

import (
	"fmt"
	"sort"

	"sparseserve/cuda"
)

// arena hands out pieces of device memory that come and go with requests: first fit over a few large allocations, since an allocation of the
// driver's own waits for the GPU. A piece that is given back may be handed out again at once: all that used it was enqueued before, on the
// one stream that computes.
type arena struct {
	m     Machine
	slab  int64 // bytes of an allocation, or more for a larger piece
	slabs []cuda.Ptr
	free  []piece // by address, neighbours joined
	used  int64
	most  int64
}

type piece struct {
	at    cuda.Ptr
	bytes int64
}

const arenaAlign = 512

func newArena(m Machine, slab int64) *arena { return &arena{m: m, slab: slab} }

// take returns a piece of at least the given bytes.
func (a *arena) take(bytes int64, what string) (piece, error) {
	bytes = max(arenaAlign, (bytes+arenaAlign-1)/arenaAlign*arenaAlign)
	for try := 0; ; try++ {
		for i := range a.free {
			f := &a.free[i]
			if f.bytes < bytes {
				continue
			}
			p := piece{f.at, bytes}
			f.at += cuda.Ptr(bytes)
			if f.bytes -= bytes; f.bytes == 0 {
				a.free = append(a.free[:i], a.free[i+1:]...)
			}
			a.used += bytes
			a.most = max(a.most, a.used)
			return p, nil
		}
		if try > 0 {
			panic("live: a new slab does not hold the piece that it was made for")
		}
		slab := max(a.slab, bytes)
		at, err := a.m.DeviceAlloc(slab)
		if err != nil {
			return piece{}, fmt.Errorf("%s, %s beside %s in use: %w", what, gib(bytes), gib(a.used), err)
		}
		a.slabs = append(a.slabs, at)
		a.insert(piece{at, slab})
	}
}

// give returns a piece; the zero piece is none.
func (a *arena) give(p piece) {
	if p.bytes > 0 {
		a.used -= p.bytes
		a.insert(p)
	}
}

func (a *arena) insert(p piece) {
	i := sort.Search(len(a.free), func(i int) bool { return a.free[i].at > p.at })
	a.free = append(a.free, piece{})
	copy(a.free[i+1:], a.free[i:])
	a.free[i] = p
	a.join(i)
	if i > 0 {
		a.join(i - 1)
	}
}

// join makes one of pieces i and i+1 if they touch and are of one allocation.
func (a *arena) join(i int) {
	if i+1 == len(a.free) || a.free[i].at+cuda.Ptr(a.free[i].bytes) != a.free[i+1].at {
		return
	}
	for _, s := range a.slabs {
		if s == a.free[i+1].at {
			return
		}
	}
	a.free[i].bytes += a.free[i+1].bytes
	a.free = append(a.free[:i+1], a.free[i+2:]...)
}

func (a *arena) close() error {
	for _, s := range a.slabs {
		if err := a.m.DeviceFree(s); err != nil {
			return err
		}
	}
	a.slabs, a.free = nil, nil
	return nil
}

func gib(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }
