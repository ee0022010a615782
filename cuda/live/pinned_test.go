package live

import (
	"errors"
	"testing"

	"sparseserve/cuda"
)

// counting is a machine with so much memory left to pin.
type counting struct {
	Machine
	left  int64
	calls int
}

func (c *counting) HostAlloc(bytes int64, _ cuda.HostPages) (cuda.HostMemory, error) {
	if c.calls++; bytes > c.left {
		return cuda.HostMemory{}, errors.New("no room")
	}
	c.left -= bytes
	return cuda.HostMemoryOf(make([]byte, bytes)), nil
}

func (c *counting) HostFree(m cuda.HostMemory) error {
	c.left += int64(len(m.Bytes()))
	return nil
}

func TestPinned(t *testing.T) {
	const big, small = pinnedLeast, 1024
	c := &counting{left: 3 * big}
	var p Pinned
	m := p.On(c)
	alloc := func(bytes int64) cuda.HostMemory {
		t.Helper()
		h, err := m.HostAlloc(bytes, cuda.HugePages)
		if err != nil || int64(len(h.Bytes())) != bytes {
			t.Fatalf("%d bytes: %d, %v", bytes, len(h.Bytes()), err)
		}
		return h
	}
	free := func(h cuda.HostMemory) {
		t.Helper()
		if err := m.HostFree(h); err != nil {
			t.Fatal(err)
		}
	}
	a, b, s := alloc(big), alloc(big), alloc(small)
	if a.Ptr() == b.Ptr() {
		t.Fatal("one memory twice")
	}
	free(a)
	free(s)
	if c.left != big {
		t.Errorf("%d bytes left: the large one goes back, or the small one stays", c.left)
	}
	m = p.On(c) // of the next device
	if again := alloc(big); again.Ptr() != a.Ptr() || c.calls != 3 {
		t.Errorf("%d calls, other memory: %v", c.calls, again.Ptr() != a.Ptr())
	}
	if other, err := m.HostAlloc(big, cuda.DriverPages); err != nil || other.Ptr() == a.Ptr() {
		t.Errorf("other pages: %v", err)
	} else {
		free(other)
	}
	free(a)
	larger := alloc(2 * big) // only where those that are kept make room; b is lent
	if c.left != 0 || len(p.kept) != 2 {
		t.Errorf("%d bytes left, %d kept", c.left, len(p.kept))
	}
	if _, err := m.HostAlloc(big, cuda.HugePages); err == nil {
		t.Error("more than there is")
	}
	free(larger)
	p.Most = 3*big + small
	if h := alloc(2 * small); len(p.kept) != 1 || c.left != 2*big-2*small {
		t.Errorf("%d bytes left, %d kept", c.left, len(p.kept))
	} else {
		free(h)
	}
	free(b)
	if err := p.Release(); err != nil || c.left != 3*big || len(p.kept) != 0 {
		t.Errorf("released: %d bytes left, %d kept, %v", c.left, len(p.kept), err)
	}
}
