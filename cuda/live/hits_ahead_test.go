package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// named notes which digests' slots were uploaded before their layer chose blocks.
type named struct {
	pinning
	uploads        []cuda.CarryArgs
	chosen         int // uploads before the last choice
	before, behind int // digests
}

func (n *named) Launch(op cuda.Operation, s cuda.Stream) error {
	n.mu.Lock()
	switch a := op.(type) {
	case *cuda.CarryArgs:
		n.uploads = append(n.uploads, *a)
	case *cuda.SelectArgs:
		n.chosen = len(n.uploads)
	case *cuda.DigestArgs:
		for i := len(n.uploads) - 1; i >= 0; i-- {
			u := &n.uploads[i]
			if a.Slot < u.Dst || a.Slot >= u.Dst+cuda.Ptr(u.Bytes) {
				continue
			}
			if i < n.chosen {
				n.before++
			} else {
				n.behind++
			}
			break
		}
	}
	n.mu.Unlock()
	return n.Machine.Launch(op, s)
}

// The blocks of a prefix are named while the layer before computes, not while the GPU waits for the
// layer's lists.
func TestPrefixesAreNamedAhead(t *testing.T) {
	c := cases()["mha/hits: layer"]
	on := emulator.New(emulator.Config{Late: true, Seed: 3})
	defer on.Close()
	m := &named{pinning: pinning{Machine: on}}
	c.run(t, m).check(t)
	if m.before == 0 || m.behind == 0 {
		t.Errorf("%d digests named before their layer chose blocks, %d behind; want both", m.before,
			m.behind)
	}
}
