package live

import (
	"cmp"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
)

// model is the weights on the device, fp16.
type model struct {
	weights.Config
	tensors []tensors // of each layer; tensors outside layers are in the first
	invFreq cuda.Ptr  // fp32 [HeadDim / 2]
}

// tensors are the addresses by kind.
type tensors [weights.Kinds]cuda.Ptr

// loadModel loads a model. A tensor that the GPU can fill is never on the host.
func loadModel(m cuda.Machine, src weights.Source) (*model, error) {
	md := &model{Config: src.Config(), tensors: make([]tensors, src.Config().Layers)}
	bytes := int64(2)
	for _, t := range md.Tensors() {
		if fillOf(src, t) == nil {
			bytes = max(bytes, 2*int64(t.Values(md.Config)))
		}
	}
	buffer, err := m.HostAlloc(bytes, cuda.HugePages)
	if err != nil {
		return nil, err
	}
	for _, t := range md.Tensors() {
		if md.tensors[t.Layer][t.Kind], err = md.load(m, src, t, buffer); err != nil {
			return nil, err
		}
	}
	if all := &md.tensors[0]; md.TiedEmbeddings {
		all[weights.Head] = all[weights.Embed]
	}
	md.invFreq, err = uploaded(m, md.InvFreq())
	return md, cmp.Or(err, m.HostFree(buffer))
}

// load loads one tensor to the device, through the buffer unless the GPU fills it.
func (md *model) load(m cuda.Machine, src weights.Source, t weights.Tensor, buffer cuda.HostMemory,
) (p cuda.Ptr, err error) {
	n := t.Values(md.Config)
	bytes := 2 * int64(n+n%2)
	if fill := fillOf(src, t); fill != nil {
		if p, err = m.DeviceAlloc(bytes); err == nil {
			fill.Dst = p
			return p, m.Launch(fill, 0)
		}
	} else {
		if err := src.Read(t, cuda.Slice[cuda.Half](buffer)[:n]); err != nil {
			return 0, err
		}
		p, err = upload(m, buffer, 2*int64(n), bytes)
	}
	if err != nil {
		err = fmt.Errorf("%v of %s, %s of weights in all: %w", t, mem.GiB(2*int64(n)),
			mem.GiB(md.WeightBytes()), err)
	}
	return p, err
}

// fillOf returns the operation that fills a tensor, without its address; nil for a tensor to read.
func fillOf(src weights.Source, t weights.Tensor) *cuda.FillArgs {
	filler, ok := src.(weights.Filler)
	n := int64(t.Values(src.Config()))
	if !ok || n%2 != 0 {
		return nil
	}
	seed, scale, ok := filler.Fill(t)
	if !ok {
		return nil
	}
	return &cuda.FillArgs{Count: n, Seed: seed, Scale: scale}
}

// upload copies the first bytes of a buffer to new device memory of the given size, and waits.
func upload(m cuda.Machine, from cuda.HostMemory, bytes, size int64) (cuda.Ptr, error) {
	p, err := m.DeviceAlloc(size)
	if err != nil {
		return 0, err
	}
	if err := m.Launch(&cuda.MemcpyArgs{Dst: p, Src: from.Ptr(), Bytes: bytes}, 0); err != nil {
		return 0, err
	}
	return p, m.StreamSync(0)
}

// uploaded copies values to new device memory, and waits.
func uploaded[T int32 | float32](m cuda.Machine, values []T) (cuda.Ptr, error) {
	bytes := 4 * int64(len(values))
	host, err := m.HostAlloc(bytes, cuda.DriverPages)
	if err != nil {
		return 0, err
	}
	copy(cuda.Slice[T](host), values)
	at, err := upload(m, host, bytes, bytes)
	return at, cmp.Or(err, m.HostFree(host))
}

// nextNorm returns the norm that follows a layer's MLP.
func (md *model) nextNorm(layer int) cuda.Ptr {
	if layer+1 < md.Layers {
		return md.tensors[layer+1][weights.AttnNorm]
	}
	return md.tensors[0][weights.Norm]
}

// heads returns the number of heads in a token's row of Q, K and V.
func (md *model) heads() int { return md.QHeads + 2*md.KVHeads }
