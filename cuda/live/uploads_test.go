package live_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/sim"
)

// uploads counts what goes up for the kernels.
type uploads struct {
	pinning
	n, bytes int64
}

func (u *uploads) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.CarryArgs); ok {
		u.mu.Lock()
		if u.on(a.Dst) == nil { // else it goes down
			u.n++
			u.bytes += a.Bytes
		}
		u.mu.Unlock()
	}
	if a, ok := op.(*cuda.HostGateArgs); ok && a.Bytes > 0 {
		u.mu.Lock()
		u.n++
		u.bytes += a.Bytes
		u.mu.Unlock()
	}
	return u.Machine.Launch(op, s)
}

// The host sends a layer all that its launches need in one copy, and the step what all layers need
// in another; lists that have not changed are not sent again, but behind a gate.
func TestOneUploadALayer(t *testing.T) {
	dense := cases()["mha/offload, dense"]
	for name, c := range map[string]*scenario{
		"flash": cases()["mha/offload, small"], "memcpy": cases()["mha/offload, memcpy"],
		"memcpy, gpu": cases()["gqa/offload, memcpy and gpu"],
		"segmented":   cases()["gqa/layer"], "in HBM": cases()["mha/sparse"],
		"psa": cases()["mha/psa, small"], "psa in HBM": cases()["mha/psa in HBM"],
		"selects": cases()["gqa/select: offload, small"], "dense": dense,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := emulator.New(emulator.Config{Late: true, Seed: 11})
			defer machine.Close()
			m := &uploads{pinning: pinning{Machine: machine}}
			var n, bytes []int64
			c.each = func() { n, bytes = append(n, m.n), append(bytes, m.bytes) }
			r := c.run(t, m)
			layers, only, still := int64(c.shape.Layers), 0, 0
			for i := range r.steps {
				if i == 0 {
					continue
				}
				was, is := &r.counters[i-1], &r.counters[i]
				count, size := n[i]-n[i-1], bytes[i]-bytes[i-1]
				if got := is.Uploads - was.Uploads; got != count || is.UploadBytes-was.UploadBytes != size {
					t.Fatalf("step %d: %d uploads of %d bytes counted, the machine saw %d of %d", i, got,
						is.UploadBytes-was.UploadBytes, count, size)
				}
				if !decodes(&r.steps[i]) || !decodes(&r.steps[i-1]) ||
					r.steps[i].Decodes != r.steps[i-1].Decodes || is.Growing != was.Growing {
					continue
				}
				only++
				// One more where another request decodes: where its digests begin.
				if count > layers+2 {
					t.Errorf("step %d: %d uploads in %d layers", i, count, layers)
				}
				if count <= layers+1 {
					still++
				}
			}
			if only < 10 || still*10 < only*8 {
				t.Errorf("%d steps of decodes only, %d of them with one upload a layer", only, still)
			}
			if c == dense && !contains(n, 1) {
				t.Error("every step sent every layer's lists anew")
			}
		})
	}
}

// Where blocks are is the same in every layer without offloading: prompts have it sent once.
func TestPrefillsInHBMUploadOnce(t *testing.T) {
	for name, c := range map[string]*scenario{
		"dense": cases()["mha/dense"], "heads share": cases()["gqa/dense"],
		"hits": cases()["gqa/hits: dense, vllm-v1"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := emulator.New(emulator.Config{Late: true, Seed: 12})
			defer machine.Close()
			m := &uploads{pinning: pinning{Machine: machine}}
			var n []int64
			c.each = func() { n = append(n, m.n) }
			r := c.run(t, m)
			r.check(t)
			prefills, twice := 0, 0
			for i := 1; i < len(r.steps); i++ {
				if r.steps[i].Prefills == 0 {
					continue
				}
				// One before the prompt's tokens are embedded, and one before the first attention. One
				// more where the step has more rows than any before: their order grows.
				prefills++
				if n[i]-n[i-1] <= 2 {
					twice++
				}
				if n[i]-n[i-1] > 3 {
					t.Errorf("step %d: %d uploads in %d layers", i, n[i]-n[i-1], c.shape.Layers)
				}
			}
			if prefills < 3 || twice < 2 {
				t.Errorf("%d steps with prefills, %d of them with two uploads", prefills, twice)
			}
		})
	}
}

func decodes(r *sim.StepRecord) bool { return r.Decodes > 0 && r.Prefills == 0 }

// contains reports whether the total grew by so much in some step.
func contains(totals []int64, by int64) bool {
	for i := 1; i < len(totals); i++ {
		if totals[i]-totals[i-1] == by {
			return true
		}
	}
	return false
}
