package cuda

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// LayerProbe times prefill overlapped with KV saves: ss_bench_prefill of probe_layers.h, which only
// calibration uses.
type LayerProbe struct{ f symbol }

// Layers is one such timing: each of Layers layers is computed, then saved while the next computes.
type Layers struct {
	Compute []Operation // LinearArgs, PrefillArgs, EmptyArgs, MemcpyArgs and CarryArgs
	// GPUScatterArgs, MemcpyBlocksArgs or SaveArgs; empty: nothing is saved
	Save            []Operation
	Each            int // of Save, that save one layer: used round robin; 0: all
	Layers          int
	Buffered        int // layers launched and not saved yet, at most; 0: all
	Warmup, Repeats int
}

// layersC has the layout of ss_layers_args.
type layersC struct {
	compute, save   unsafe.Pointer
	nCompute, nSave int32
	layers          int32
	warmup, repeats int32
	buffered, each  int32
	samples         unsafe.Pointer
}

// LayerProbe looks the probe up in the library.
func (l *Library) LayerProbe() (*LayerProbe, error) {
	const name = "ss_bench_prefill"
	// Opens the same library again.
	handle, err := purego.Dlopen(l.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %s does not load: %w", ErrNoLibrary, l.Path, err)
	}
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s has no %s; rebuild it with 'make cuda'", ErrNoSymbol, l.Path,
			name)
	}
	return &LayerProbe{symbol{name, address}}, nil
}

// Bench returns every sample in milliseconds.
func (p *LayerProbe) Bench(s *Session, l Layers) ([]float64, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	compute, save := pinCalls(&pin, l.Compute), pinCalls(&pin, l.Save)
	samples := make([]float32, max(l.Repeats, 1))
	pin.Pin(&samples[0])
	c := layersC{
		compute: unsafe.Pointer(unsafe.SliceData(compute)), nCompute: int32(len(compute)),
		save: unsafe.Pointer(unsafe.SliceData(save)), nSave: int32(len(save)),
		layers: int32(l.Layers), warmup: int32(l.Warmup), repeats: int32(l.Repeats),
		buffered: int32(l.Buffered), each: int32(l.Each), samples: unsafe.Pointer(&samples[0]),
	}
	err := s.call(p.f, uintptr(unsafe.Pointer(&c)))
	return float64s(samples), err
}
