package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
)

// model is the weights on the device, fp16.
type model struct {
	weights.Config
	embed, norm, head cuda.Ptr
	layers            []layerWeights
	invFreq           cuda.Ptr // fp32 [HeadDim / 2]
	all               []cuda.Ptr
}

type layerWeights struct{ attnNorm, qkv, o, mlpNorm, gateUp, down cuda.Ptr }

// loadModel loads a model. A tensor that the GPU can fill by itself is never on the host.
func loadModel(m cuda.Machine, src weights.Source) (*model, error) {
	md := &model{Config: src.Config(), layers: make([]layerWeights, src.Config().Layers)}
	filler, _ := src.(weights.Filler)
	var buffer cuda.HostMemory
	var held int
	defer func() {
		if held > 0 {
			_ = m.HostFree(buffer) // an error before this one matters more
		}
	}()
	for _, t := range md.Tensors() {
		n := t.Values(md.Config)
		p, err := m.DeviceAlloc(2 * int64(n+n%2))
		if err != nil {
			return nil, fmt.Errorf("%v of %s, %s of weights in all: %w", t, mem.GiB(2*int64(n)),
				mem.GiB(md.Bytes()), err)
		}
		md.all = append(md.all, p)
		md.put(t, p)
		if filler != nil {
			if seed, scale, ok := filler.Fill(t); ok && n%2 == 0 {
				if err := m.Launch(&cuda.FillArgs{Dst: p, Count: int64(n), Seed: seed,
					Scale: scale}, 0); err != nil {
					return nil, err
				}
				continue
			}
		}
		if held < n {
			if held > 0 {
				if err := m.HostFree(buffer); err != nil {
					return nil, err
				}
			}
			if buffer, err = m.HostAlloc(2*int64(n), cuda.HugePages); err != nil {
				return nil, err
			}
			held = n
		}
		if err := src.Read(t, cuda.Slice[cuda.Half](buffer)[:n]); err != nil {
			return nil, err
		}
		if err := m.Launch(&cuda.MemcpyArgs{Dst: p, Src: buffer.Ptr(), Bytes: 2 * int64(n)},
			0); err != nil {
			return nil, err
		}
		if err := m.StreamSync(0); err != nil { // the buffer is used again
			return nil, err
		}
	}
	if md.Tied {
		md.head = md.embed
	}
	return md, md.loadFrequencies(m)
}

func (md *model) loadFrequencies(m cuda.Machine) error {
	freq := md.Rope.InvFreq(md.HeadDim)
	buffer, err := m.HostAlloc(4*int64(len(freq)), cuda.DriverPages)
	if err != nil {
		return err
	}
	copy(cuda.Slice[float32](buffer), freq)
	if md.invFreq, err = m.DeviceAlloc(4 * int64(len(freq))); err != nil {
		return err
	}
	md.all = append(md.all, md.invFreq)
	if err := m.Launch(&cuda.MemcpyArgs{Dst: md.invFreq, Src: buffer.Ptr(),
		Bytes: 4 * int64(len(freq))}, 0); err != nil {
		return err
	}
	if err := m.StreamSync(0); err != nil {
		return err
	}
	return m.HostFree(buffer)
}

func (md *model) put(t weights.Tensor, p cuda.Ptr) {
	switch t.Kind {
	case weights.Embed:
		md.embed = p
	case weights.Norm:
		md.norm = p
	case weights.Head:
		md.head = p
	case weights.AttnNorm:
		md.layers[t.Layer].attnNorm = p
	case weights.QKV:
		md.layers[t.Layer].qkv = p
	case weights.O:
		md.layers[t.Layer].o = p
	case weights.MLPNorm:
		md.layers[t.Layer].mlpNorm = p
	case weights.GateUp:
		md.layers[t.Layer].gateUp = p
	case weights.Down:
		md.layers[t.Layer].down = p
	}
}

// nextNorm is the norm that follows a layer's MLP.
func (md *model) nextNorm(layer int) cuda.Ptr {
	if layer+1 < md.Layers {
		return md.layers[layer+1].attnNorm
	}
	return md.norm
}

// heads is the number of heads in a token's row of Q, K and V.
func (md *model) heads() int { return md.HeadsQ + 2*md.HeadsKV }

func (md *model) close(m cuda.Machine) error {
	for _, p := range md.all {
		if err := m.DeviceFree(p); err != nil {
			return err
		}
	}
	md.all = nil
	return nil
}
