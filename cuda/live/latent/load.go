package latent

import (
	"fmt"
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
)

// model is the weights on the device, fp16.
type model struct {
	tensors [][kinds]cuda.Ptr // of each layer; tensors outside layers are in the first
	invFreq cuda.Ptr          // fp32 [Rope / 2]
}

// load creates the random model: the GPU fills all tensors except the norms.
func (d *Device) load() error {
	s := &d.shape
	d.model.tensors = make([][kinds]cuda.Ptr, s.Layers)
	err := s.each(func(k kind, layer int, t tensorOf) (err error) {
		n := t.rows * t.in
		to := &d.model.tensors[layer][k]
		if t.constant {
			*to, err = upload(d, s.values(d.cfg.Seed, k, layer))
			return err
		}
		if *to, err = d.m.DeviceAlloc(int64(2*n + 2*(n%2))); err != nil {
			return fmt.Errorf("weights, %s of one tensor: %w", mem.GiB(int64(2*n)), err)
		}
		seed, scale := t.fill(d.cfg.Seed, k, layer)
		return d.m.Launch(&cuda.FillArgs{Dst: *to, Count: int64(n + n%2), Seed: seed, Scale: scale},
			d.stream)
	})
	if err == nil {
		d.model.invFreq, err = upload(d, s.invFreq())
	}
	return err
}

// upload copies values to new device memory, and waits.
func upload[T cuda.Half | float32](d *Device, values []T) (p cuda.Ptr, err error) {
	bytes := int64(len(values)) * int64(unsafe.Sizeof(values[0]))
	from, err := d.m.HostAlloc(bytes, cuda.DriverPages)
	if err != nil {
		return 0, err
	}
	copy(cuda.Slice[T](from), values)
	if p, err = d.m.DeviceAlloc(bytes); err != nil {
		return 0, err
	}
	d.launch(&cuda.MemcpyArgs{Dst: p, Src: from.Ptr(), Bytes: bytes})
	if d.err != nil {
		return 0, d.err
	}
	if err = d.m.StreamSync(d.stream); err != nil {
		return 0, err
	}
	return p, d.m.HostFree(from)
}
