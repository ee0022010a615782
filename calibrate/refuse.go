package calibrate

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/sparseserve/sparseserve/cuda"
)

// Maximum use by other processes of a card that can be measured.
const (
	busyPercent = 10
	busyBytes   = 2 * gib // our own context included
)

// remedies are what a user can do about an error.
var remedies = []struct {
	of   error
	text string
}{
	{cuda.ErrNoLibrary, "Calibration runs the CUDA kernels: 'make calibrate' builds them and " +
		"measures"},
	{cuda.NoDriver, "Calibration needs a GPU with its NVIDIA driver: install one, or use a built-in " +
		"profile ('sparseserve list gpus')"},
	{cuda.NoDevice, "Calibration needs a GPU: run it where 'nvidia-smi' lists one, or use a " +
		"built-in profile ('sparseserve list gpus')"},
	{cuda.NoCuBLAS, "Linears are timed with cuBLAS: put its folder into LD_LIBRARY_PATH"},
	{cuda.OutOfMemory, "Give a smaller pool with --pool, or end what else uses the memory"},
}

// explain adds the remedy to an error.
func explain(err error) error {
	if errors.Is(err, cuda.ErrNoLibrary) {
		if _, missing := exec.LookPath("nvcc"); missing != nil {
			return fmt.Errorf("%w. Calibration runs the CUDA kernels: install the CUDA toolkit (nvcc is "+
				"not on the PATH; Debian: nvidia-cuda-toolkit, non-free), then 'make calibrate'", err)
		}
	}
	for _, r := range remedies {
		if errors.Is(err, r.of) {
			return fmt.Errorf("%w. %s", err, r.text)
		}
	}
	return err
}

// limits returns an error for a machine with too little memory or a busy card, and otherwise the
// bounds of the plan.
func (b box) limits(o Options) (Limits, error) {
	if b.busy > busyPercent {
		return Limits{}, fmt.Errorf("the card is busy: others use %d %% of its time ('nvidia-smi' lists "+
			"them). Timings would be of both; end them, or choose an idle card with CUDA_VISIBLE_DEVICES",
			b.busy)
	}
	if b.gpu.MemoryBusyBytes > busyBytes {
		return Limits{}, fmt.Errorf("the card is busy: %.1f GiB of its memory are in use ('nvidia-smi' "+
			"lists by whom). End them, or choose an idle card with CUDA_VISIBLE_DEVICES",
			float64(b.gpu.MemoryBusyBytes)/gib)
	}
	free := (b.gpu.MemoryBytes - b.gpu.MemoryBusyBytes) * 9 / 10
	if free < leastDeviceBytes {
		return Limits{}, fmt.Errorf("too little GPU memory: %.1f GiB can be used, %d GiB are needed",
			float64(free)/gib, leastDeviceBytes/gib)
	}
	l := Limits{PoolGiB: o.PoolGiB, Threads: b.cpus, DeviceBytes: free}
	if l.PoolGiB == 0 {
		l.PoolGiB = defaultPoolGiB(o.Plan)
		if b.hostMemory > 0 {
			l.PoolGiB = min(l.PoolGiB, b.hostMemory/2/gib)
		}
	}
	if l.PoolGiB < leastPoolGiB {
		return Limits{}, fmt.Errorf("too little host memory: %.1f GiB are available, and half of them "+
			"are not %d GiB to pin. End other programs, or give --pool", float64(b.hostMemory)/gib,
			leastPoolGiB)
	}
	return l, nil
}

// defaultPoolGiB is the default size of the largest pinned pool.
func defaultPoolGiB(p Plan) int64 {
	if p == Quick {
		return 1
	}
	return 32
}
