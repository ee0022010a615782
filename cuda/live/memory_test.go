package live_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// Too little memory is known before any is taken, with what it is for and which key to lower.
func TestMemoryIsCheckedFirst(t *testing.T) {
	c := cases()["mha/layer"]
	cfg, err := c.onDevice()
	if err != nil {
		t.Fatal(err)
	}
	load := live.Load{Requests: []int{148, 100, 98, 84, 53, 49, 6}, Prompt: 130}
	for _, x := range []struct {
		what         string
		device, host int64
		kvBytes      int64
		dram         float64
		where        string
		want         []string
	}{
		{what: "enough", device: 256 << 20, host: 256 << 20, kvBytes: c.kvBytes, dram: 0.05},
		{what: "host not known", device: 256 << 20, kvBytes: c.kvBytes, dram: 0.05},
		{what: "a large cache", device: 256 << 20, host: 256 << 20, kvBytes: 1 << 30, dram: 0.05,
			where: "device",
			want: []string{"lower system.kv_gib\n", "KV slots", "1.00 GiB", "weights",
				"activations of the largest step", "save buffer", "metadata at the most",
				"buffers of the longest prefill", "KV pool at the most"}},
		{what: "a small host", device: 256 << 20, host: 32 << 20, kvBytes: c.kvBytes, dram: 0.05,
			where: "host", want: []string{"system.dram_gib"}},
	} {
		spec := c.spec
		spec.DRAMGiB = x.dram
		cfg.Spec, cfg.KVBytes = &spec, x.kvBytes
		m := emulator.New(emulator.Config{MemoryBytes: x.device})
		err := live.Fits(m, cfg, load, x.host)
		var short *live.MemoryError
		if errors.As(err, &short) != (x.where != "") {
			t.Fatalf("%s: %v", x.what, err)
		}
		if d, h := m.Held(); d != 0 || h != 0 {
			t.Errorf("%s: %d and %d bytes were allocated", x.what, d, h)
		}
		if x.where == "" {
			continue
		}
		if short.Where != x.where || short.Needs <= short.Have {
			t.Errorf("%s: %+v", x.what, short)
		}
		for _, w := range x.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nlacks %q", x.what, err, w)
			}
		}
	}
}

// The memory reported as needed is at least what a run allocates.
func TestMemoryNeededIsNotLessThanTaken(t *testing.T) {
	load := live.Load{Requests: []int{148, 100, 98, 84, 53, 49, 6}, Prompt: 130}
	for _, name := range []string{"mha/layer", "gqa/offload", "gqa/offload, small", "gqa/layer",
		"mha/sparse", "gqa/dense",
		"gqa/plain prefill", "mha/gpu lookup: layer", "gqa/gpu lookup: psa",
		"sparse prefill/chunked, one of each", "sparse prefill/layer, one of each",
		"sparse prefill/layer-chunked, everything", "sparse prefill/chunked, drawn"} {
		c, load := cases()[name], load
		if c.patterns != nil {
			load = live.Load{Requests: []int{304, 194, 74}, Prompt: 301}
		}
		cfg, err := c.onDevice()
		if err != nil {
			t.Fatal(err)
		}
		m := &most{Machine: emulator.New(emulator.Config{})}
		_, device, err := c.onMachine(t.Context(), m, &counted{})
		if err != nil {
			t.Fatal(err)
		}
		if err := device.Close(); err != nil {
			t.Fatal(err)
		}
		var short *live.MemoryError
		if err := live.Fits(emulator.New(emulator.Config{MemoryBytes: 1}), cfg, load,
			0); !errors.As(err, &short) {
			t.Fatalf("%s: %v", name, err)
		}
		if short.Needs < m.largest {
			t.Errorf("%s: %d bytes were allocated, %d reported as needed\n%v", name, m.largest,
				short.Needs, err)
		}
	}
}

// most keeps the largest amount of device memory held.
type most struct {
	*emulator.Machine
	largest int64
}

func (m *most) DeviceAlloc(bytes int64) (cuda.Ptr, error) {
	p, err := m.Machine.DeviceAlloc(bytes)
	held, _ := m.Held()
	m.largest = max(m.largest, held)
	return p, err
}
