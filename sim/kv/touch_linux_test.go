package kv

import (
	"syscall"
	"testing"
	"unsafe"
)

// An addressed cache's tables of a request are in memory before they are used: a first decode would
// wait for thousands of page faults.
func TestOpenTouchesTheTablesOfADeviceThatComputes(t *testing.T) {
	geo := Geometry{Layers: 32, KVHeads: 32, BlockTokens: 16, BlockBytes: 8192}
	c, err := NewCache(Config{
		Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 30, Eviction: "lru", Window: 12,
		Addressed: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Open(16 * 4096)
	page := syscall.Getpagesize()
	marks := unsafe.Slice((*byte)(unsafe.Pointer(&s.marks[0])), 4*len(s.marks))
	slots := unsafe.Slice((*byte)(unsafe.Pointer(&s.slots[0])), 4*len(s.slots))
	for name, b := range map[string][]byte{"marks": marks, "slots": slots} {
		there := make([]byte, len(b)/page)
		from := uintptr(unsafe.Pointer(&b[0])) &^ uintptr(page-1)
		if _, _, e := syscall.Syscall(syscall.SYS_MINCORE, from, uintptr(len(there)*page),
			uintptr(unsafe.Pointer(&there[0]))); e != 0 {
			t.Fatal(e)
		}
		missing := 0
		for _, p := range there {
			missing += 1 - int(p&1)
		}
		if missing > 0 {
			t.Errorf("%s: %d of %d pages are not in memory", name, missing, len(there))
		}
	}
}
