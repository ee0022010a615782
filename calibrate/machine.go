package calibrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/internal/files"
)

// box is a machine's description before the measurement.
type box struct {
	gpu        cuda.DeviceInfo
	busy       int   // per cent of the GPU's time that others use; -1: not known
	hostMemory int64 // bytes available; 0: not known
	cpus       int
}

// OpenMachine opens the library and the GPU. It returns an error with the remedy if the machine
// cannot be calibrated. close frees the GPU.
func OpenMachine(library string, o Options) (m Machine, close func() error, err error) {
	lib, err := cuda.Open(library)
	if err != nil {
		return m, nil, explain(err)
	}
	b := box{busy: settledUtilisation(busyWait), hostMemory: availableMemory(), cpus: runtime.NumCPU()}
	err = lib.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		b.gpu, err = s.Device()
		return err
	})
	if err == nil {
		if m.Limits, err = b.limits(o); err == nil {
			var g *gpuBench
			if g, err = newLibraryBench(lib, b.gpu, m.Limits); err == nil {
				m.Bench = g
				m.Origin = origin(lib, b)
				return m, func() error { defer lib.Close(); return g.Close() }, nil
			}
		}
	}
	lib.Close()
	return m, nil, explain(err)
}

// origin describes this machine as the origin of samples.
func origin(lib *cuda.Library, b box) Origin {
	library := strconv.Itoa(cuda.Version)
	if data, err := files.ReadResult(lib.Path); err == nil {
		library += fmt.Sprintf(" sha256 %.8x", sha256.Sum256(data))
	}
	return Origin{
		Card: oneLine(b.gpu.Name), Driver: driverVersion(b.gpu), CUDA: cudaVersion(b.gpu.ToolkitVersion),
		Library: library,
		Host:    fmt.Sprintf("%d CPUs%s", b.cpus, cpuModel()),
		Memory:  strconv.FormatInt(b.gpu.MemoryBytes, 10),
		SMs:     strconv.Itoa(b.gpu.SMCount),
	}
}

func cudaVersion(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Patterns of lines in the system's files.
const (
	driverLine = `Module\s+(?:for \S+\s+)?(\d+\.\d+(?:\.\d+)?)`
	cpuLine    = `(?m)^model name\s*:\s*(.+)$`
	memoryLine = `(?m)^MemAvailable:\s*(\d+) kB$`
)

// lineOf returns what a pattern finds in a file of the system, or "".
func lineOf(path, pattern string) string {
	data, err := files.ReadText(path)
	if err == nil {
		if m := regexp.MustCompile(pattern).FindSubmatch(data); m != nil {
			return oneLine(string(m[1]))
		}
	}
	return ""
}

// driverVersion returns the version of the kernel module, or, if it cannot be read, the CUDA
// version of the driver.
func driverVersion(gpu cuda.DeviceInfo) string {
	return cmp.Or(lineOf("/proc/driver/nvidia/version", driverLine), oneLine(smi("driver_version")),
		"for CUDA "+cudaVersion(gpu.DriverVersion))
}

func cpuModel() string {
	if name := lineOf("/proc/cpuinfo", cpuLine); name != "" {
		return ", " + name
	}
	return ""
}

func availableMemory() int64 {
	kb, _ := strconv.ParseInt(lineOf("/proc/meminfo", memoryLine), 10, 64) // 0: not known
	return kb * kib
}

// busyWait is the time for which a free card may look busy: nvidia-smi reports a mean over the last
// second or so, in which an interrupted calibration may still have run.
const busyWait = 4 * time.Second

// settledUtilisation polls until the card is idle, at most for the given time.
func settledUtilisation(wait time.Duration) int {
	for until := time.Now().Add(wait); ; time.Sleep(wait / 20) {
		if n := utilisation(); n <= busyPercent || time.Now().After(until) {
			return n
		}
	}
}

// utilisation returns the GPU's utilisation by nvidia-smi before this program uses it; -1 if
// nvidia-smi fails.
func utilisation() int {
	n, err := strconv.Atoi(strings.TrimSpace(smi("utilization.gpu")))
	if err != nil {
		return -1
	}
	return n
}

// smi returns nvidia-smi's answer for the first GPU, or "".
func smi(query string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	gpu := "0"
	if visible, _, _ := strings.Cut(os.Getenv("CUDA_VISIBLE_DEVICES"), ","); visible != "" {
		gpu = visible
	}
	out, err := exec.CommandContext(
		ctx, "nvidia-smi", "-i", gpu, "--query-gpu="+query, "--format=csv,noheader,nounits").Output()
	if err != nil {
		return ""
	}
	return string(out)
}
