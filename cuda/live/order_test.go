package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// ordered keeps the order in which blocks are copied to host memory one by one.
type ordered struct {
	pinning
	to    [][]int64 // of each batch
	block int64     // bytes
}

func (o *ordered) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.MemcpyBlocksArgs); ok {
		o.mu.Lock()
		to := append([]int64(nil), o.on(a.Dst)[:a.Count]...)
		if o.on(cuda.Ptr(to[0])) != nil {
			o.to, o.block = append(o.to, to), a.BlockBytes
		}
		o.mu.Unlock()
	}
	return o.Machine.Launch(op, s)
}

// Saved with a memcpy each, the KV heads of a block are copied in their order in DRAM.
func TestMemcpySavesGoByPlace(t *testing.T) {
	c := cases()["mha/offload, memcpy"]
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &ordered{pinning: pinning{Machine: on}}
	c.run(t, m).check(t)
	heads, many := c.shape.KVHeads, 0
	for _, to := range m.to {
		for i := 1; i < len(to); i++ {
			if i%heads != 0 && to[i]-to[i-1] != m.block {
				t.Fatalf("blocks %d and %d of a save are %d bytes apart, want %d", i-1, i,
					to[i]-to[i-1], m.block)
			}
		}
		if len(to) > heads {
			many++
		}
	}
	if heads < 2 || many == 0 {
		t.Fatalf("%d heads, %d of %d saves with several blocks of tokens", heads, many, len(m.to))
	}
}

// A run of blocks that is longer than a part of the ring is saved in parts, all of it and nothing
// twice.
func TestMemcpySavesInParts(t *testing.T) {
	c := cases()["mha/offload, small, plain prefill"]
	c.spec.Offload.Load, c.spec.Offload.Save = "memcpy", "memcpy"
	c.shape.QHeads, c.shape.KVHeads, c.kvBytes = 3, 3, c.kvBytes*3/2
	c.spec.Offload.SaveBufferMiB =
		1e-6 // the least: parts of 16 blocks, which end within a block of tokens
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &ordered{pinning: pinning{Machine: on}}
	c.run(t, m).check(t)
	parts := 0
	for i, to := range m.to {
		if len(to) > 16 {
			t.Fatalf("%d blocks in one part", len(to))
		}
		if len(to) == 16 && i+1 < len(m.to) {
			parts++
		}
	}
	if parts == 0 || 16%c.shape.KVHeads == 0 {
		t.Fatalf("%d whole parts among %d, %d heads", parts, len(m.to), c.shape.KVHeads)
	}
}
