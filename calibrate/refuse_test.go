package calibrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// Each lack is named with what to do about it.
func TestRefusals(t *testing.T) {
	good := box{gpu: cuda.DeviceInfo{MemoryBytes: 80 * gib, MemoryBusyBytes: gib / 2}, busy: 0,
		hostMemory: 100 * gib, cpus: 16}
	for _, c := range []struct {
		name   string
		change func(b *box)
		want   []string
	}{
		{"busy", func(b *box) { b.busy = 97 },
			[]string{"busy", "97 %", "nvidia-smi", "CUDA_VISIBLE_DEVICES"}},
		{"memory in use", func(b *box) { b.gpu.MemoryBusyBytes = 30 * gib },
			[]string{"busy", "30.0 GiB", "nvidia-smi"}},
		{"small GPU", func(b *box) { b.gpu.MemoryBytes = 8 * gib },
			[]string{"too little GPU memory", "8 GiB are needed"}},
		{"small host", func(b *box) { b.hostMemory = gib },
			[]string{"too little host memory", "1.0 GiB", "--pool"}},
	} {
		b := good
		c.change(&b)
		_, err := b.limits(Options{Plan: Full})
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q", c.name, err, w)
			}
		}
	}
	for _, c := range []struct {
		name     string
		host     int64
		asked    int64
		plan     Plan
		pool     int64
		busyness int
	}{
		{"enough", 100 * gib, 0, Full, 32, 0},
		{"half of what is free", 20 * gib, 0, Full, 10, 0},
		{"as asked", 20 * gib, 64, Full, 64, 0},
		{"quick", 100 * gib, 0, Quick, 1, 0},
		{"not known", 0, 0, Full, 32, -1},
	} {
		b := good
		b.hostMemory, b.busy = c.host, c.busyness
		l, err := b.limits(Options{Plan: c.plan, PoolGiB: c.asked})
		if err != nil || l.PoolGiB != c.pool || l.Threads != 16 {
			t.Errorf("%s: %+v, %v, want a pool of %d GiB", c.name, l, err, c.pool)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no nvcc
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: tried x", cuda.ErrNoLibrary), "nvcc is not on the PATH"},
		{&cuda.Error{Call: "ss_init", Code: cuda.NoDriver, Text: "no NVIDIA driver is loaded"},
			"install one"},
		{&cuda.Error{Call: "ss_init", Code: cuda.NoDevice, Text: "finds no GPU"}, "nvidia-smi"},
		{&cuda.Error{Call: "ss_linear_open", Code: cuda.NoCuBLAS, Text: "not found"}, "LD_LIBRARY_PATH"},
		{&cuda.Error{Call: "ss_host_alloc", Code: cuda.OutOfMemory, Text: "out"}, "--pool"},
	} {
		got := explain(c.err)
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%v becomes %v, want %q", c.err, got, c.want)
		}
	}
	if explain(nil) != nil {
		t.Error("nothing is wrong, yet explained")
	}
	if _, _, err := OpenMachine("/no/such/library.so", Options{Plan: Full}); !errors.Is(
		err, cuda.ErrNoLibrary) {
		t.Errorf("no library: %v", err)
	}
}
