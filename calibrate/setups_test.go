package calibrate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// tinyShape writes a model small enough for the emulator and returns its file.
func tinyShape(t *testing.T, headDim int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.toml")
	text := fmt.Sprintf(`name = "tiny"
layers = 2
hidden = 128
q_heads = 4
kv_heads = 2
head_dim = %d
ffn = 128
vocab = 256
max_context = 65536
tokenizer = "llama2"
weight_bytes_each = 2
kv_bytes_each = 2
source = "a test"
`, headDim)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// setupPoints are a small point of each probe that has a set-up on the GPU, and an operation
// whose result its check sees. Heads of the wide shape have 128 values.
func setupPoints(shape, wide string) []struct {
	Point
	of cuda.Operation
} {
	const block = 4 * kib
	return []struct {
		Point
		of cuda.Operation
	}{
		{point(probeH2D, "", mib), &cuda.MemcpyArgs{}},
		{point(probeD2H, "", mib), &cuda.MemcpyArgs{}},
		{point(probeDuplex, "", mib, 0), &cuda.MemcpyArgs{}},
		{point(probeDuplex, "", 0, mib), &cuda.GPUScatterArgs{}},
		{point(probeLoadMemcpy, "", block, 16, 8), &cuda.MemcpyBlocksArgs{}},
		{point(probeLoadFlash, "", block, 16, 8), &cuda.FlashH2DArgs{}},
		{point(probeOverlap, shape, 64, 64, 0, 0), &cuda.PrefillArgs{}},
		{point(probeOverlap, shape, 64, 64, 16, 0), &cuda.FlashH2DArgs{}},
		{point(probeOverlap, shape, 64, 64, 0, 16), &cuda.GPUScatterArgs{}},
		{point(probeSwap, "", 656, 3, 64, 4), &cuda.SwapInArgs{}},
		{point(probeSwap, "", 1152, 2, 64, 0), &cuda.SwapInArgs{}},
		{point(probeSaveMemcpy, "", block, 16, 8), &cuda.MemcpyBlocksArgs{}},
		{point(probeSaveGPU, "", block, 16, 8), &cuda.GPUScatterArgs{}},
		{point(probeSaveFlash, "", block, 16, 8, 2), &cuda.SaveArgs{}},
		{point(probeLinears, shape, 3), &cuda.LinearArgs{}},
		{point(probePointwise, shape, 40), &cuda.SiluMulArgs{}},
		{point(probeInPlace, shape, 40), &cuda.SiluMulArgs{}},
		{point(probeAfterDecodes, shape, 48), &cuda.LinearArgs{}},
		{point(probePrefill, shape, 64, 0), &cuda.PrefillArgs{}},
		{point(probePrefill, shape, 64, 96), &cuda.PrefillArgs{}},
		{point(probePrefillBlocks, shape, 64, 96, 16), &cuda.PrefillArgs{}},
		{point(probeSparseAttention, wide, 70, 200, 32, 64, 0, 0), &cuda.MIAttendArgs{}},
		{point(probeSparseAttention, wide, 150, 250, 0, 0, 2, 5), &cuda.MIAttendArgs{}},
		{point(probeSparseAttention, wide, 150, 0, 0, 0, 4, 0), &cuda.MIAttendArgs{}},
		{point(probeSparseIndex, wide, 70, 200, 40, 80, 0), &cuda.MITopKArgs{}},
		{point(probeSparseIndex, wide, 70, 200, 40, 80, 0), &cuda.MIEstimateArgs{}},
		{point(probeSparseIndex, wide, 70, 200, 40, 80, 0), &cuda.MILinesArgs{}},
		{point(probeSparseIndex, wide, 150, 250, 0, 0, 2), &cuda.MIPoolArgs{}},
		{point(probeSparseIndex, wide, 150, 250, 0, 0, 2), &cuda.MIBlocksArgs{}},
		{point(probeDense, shape, 2, 64), &cuda.DecodeArgs{}},
		{point(probeSparse, shape, 2, 64), &cuda.DecodeArgs{}},
		{point(probeShared, shape, 3, 128, 64), &cuda.DecodeArgs{}},
		{point(probeSelect, shape, 2, 512, 256), &cuda.SelectArgs{}},
		{point(probeChunk, shape, 64, 64), &cuda.PrefillArgs{}},
		{point(probeClock, shape, 64, 1), &cuda.LinearArgs{}},
	}
}

// Each set-up computes what the reference does, and is not timed where a kernel of it does nothing.
func TestSetupsAreChecked(t *testing.T) {
	e := newEmulated(emulator.Config{})
	g, err := newGPUBench(func(f func(gpu) error) error { return f(e) }, cuda.DeviceInfo{},
		Limits{Threads: 4, DeviceBytes: 1200 * mib})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range setupPoints(tinyShape(t, 64), tinyShape(t, 128)) {
		if testing.Short() && i%3 > 0 {
			continue // each has seconds of an emulated GPU
		}
		name := strings.Fields(p.Key())[0]
		timed, err := g.Prepare(p.Point)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if samples, err := timed(1, 3); err != nil || len(samples) != 3 || !(samples[0] > 0) {
			t.Errorf("%s: samples %v, %v", name, samples, err)
		}
		e.wrong = func(op cuda.Operation) bool { return cuda.Function(op) == cuda.Function(p.of) }
		clear(g.rounds)
		if _, err := g.Prepare(p.Point); err == nil {
			t.Errorf("%s: %s does nothing, yet the check passes", name, cuda.Function(p.of))
		}
		e.wrong = nil
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if device, host := e.Held(); device != 0 || host != stagingBytes {
		t.Errorf("%d bytes of the device and %d of the host are held", device, host)
	}
}
