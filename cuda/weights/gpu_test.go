//go:build gpu

package weights

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// What ss_fill writes with a tensor's seed and scale is what Read returns, bit for bit.
func TestGPUFillsAsRead(t *testing.T) {
	r, err := NewRandom(plain(llm.Model{Layers: 2, Hidden: 1024, QHeads: 16, KVHeads: 4, HeadDim: 64,
		FFN: 344, Vocab: 5003}), 11)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := cuda.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	err = lib.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		for _, tensor := range r.Config().Tensors() {
			seed, scale, ok := r.Fill(tensor)
			if !ok {
				continue
			}
			want := make([]cuda.Half, tensor.Values(r.Config()))
			if err := r.Read(tensor, want); err != nil {
				return err
			}
			bytes := int64(2 * len(want))
			on, err := s.DeviceAlloc(bytes)
			if err != nil {
				return err
			}
			got, err := s.HostAlloc(bytes, cuda.DriverPages)
			if err != nil {
				return err
			}
			if err := s.Launch(&cuda.FillArgs{Dst: on, Count: int64(len(want)), Seed: seed, Scale: scale},
				0); err != nil {
				return err
			}
			if err := s.Launch(&cuda.MemcpyArgs{Dst: got.Ptr(), Src: on, Bytes: bytes}, 0); err != nil {
				return err
			}
			if err := s.StreamSync(0); err != nil {
				return err
			}
			if !slices.Equal(cuda.Slice[cuda.Half](got)[:len(want)], want) {
				t.Errorf("%v: the GPU's values are not those read", tensor)
			}
			if err := s.DeviceFree(on); err != nil {
				return err
			}
			if err := s.HostFree(got); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
