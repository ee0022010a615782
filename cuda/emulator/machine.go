package emulator

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// Config configures a machine. The zero value runs operations at once.
type Config struct {
	MemoryBytes int64 // HBM; 0: 4 GiB
	// operations run when a blocking call needs them, not when they are called
	Late bool
	// For Late: 0 runs each as late as possible, other seeds let random streams run ahead at times.
	Seed  uint64
	Clock func() time.Time // of events; nil: time.Now
}

// Machine is the device. Its methods may be called from any goroutine; one runs at a time.
type Machine struct {
	lock   sync.Mutex
	config Config
	memory memory

	handles uintptr // the last one given
	streams map[cuda.Stream]*stream
	events  map[cuda.Event]*event
	savers  map[cuda.Saver]int64 // bytes of a chunk

	order  []*stream  // all that can hold work, by age
	random *rand.Rand // nil: nothing runs ahead
	// Error of an operation that ran late; every later call fails with it, as after a fault on a GPU.
	failed error
}

// New returns a machine with its default stream and no memory in use.
func New(c Config) *Machine {
	if c.MemoryBytes == 0 {
		c.MemoryBytes = 4 << 30
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	m := &Machine{config: c, streams: map[cuda.Stream]*stream{}, events: map[cuda.Event]*event{},
		savers: map[cuda.Saver]int64{}}
	if c.Late && c.Seed != 0 {
		m.random = rand.New(rand.NewPCG(c.Seed, 0))
	}
	m.streams[0] = m.newStream()
	return m
}

// enter serialises calls; the returned function ends the call.
func (m *Machine) enter() func() {
	m.lock.Lock()
	return m.lock.Unlock
}

// call is one call of the library: it enters, and f may panic as an operation does.
func (m *Machine) call(name string, f func(*access) error) error {
	defer m.enter()()
	return m.guard(name, f)
}

// Close frees all memory. It drops work that no call has waited for.
func (m *Machine) Close() {
	defer m.enter()()
	for _, s := range m.order {
		s.queue = nil
	}
	m.memory.close()
}

// Held returns the bytes allocated and not yet freed.
func (m *Machine) Held() (device, pinned int64) {
	defer m.enter()()
	return m.memory.held[onDevice], m.memory.held[onHost]
}

// Init selects the only device.
func (m *Machine) Init(int) error { return nil }

// Device describes the machine: no GPU, with the least capability that the library supports.
func (m *Machine) Device() (cuda.DeviceInfo, error) {
	defer m.enter()()
	return cuda.DeviceInfo{Name: "reference device in Go", MemoryBytes: m.config.MemoryBytes,
		MemoryBusyBytes: m.memory.held[onDevice], SMCount: 1,
		Capability: 80, CopyEngines: 2}, m.failed
}

// DeviceAlloc returns device memory that holds NaN.
func (m *Machine) DeviceAlloc(bytes int64) (cuda.Ptr, error) {
	defer m.enter()()
	const call = "ss_device_alloc"
	if bytes <= 0 {
		return 0, failure(call, cuda.BadArgument, "%d bytes", bytes)
	}
	if free := m.config.MemoryBytes - m.memory.held[onDevice]; bytes > free {
		return 0, failure(call, cuda.OutOfMemory, "%d bytes asked for, %d of %d free", bytes,
			free, m.config.MemoryBytes)
	}
	r, err := m.memory.alloc(call, bytes, onDevice)
	if err != nil {
		return 0, err
	}
	return r.at, nil
}

// DeviceFree frees device memory when the device is idle.
func (m *Machine) DeviceFree(p cuda.Ptr) error {
	defer m.enter()()
	return m.free("ss_device_free", p, onDevice, cuda.Failed)
}

// HostAlloc returns pinned memory that holds NaN; all pages are alike.
func (m *Machine) HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error) {
	defer m.enter()()
	const call = "ss_host_alloc"
	if bytes <= 0 || pages != cuda.DriverPages && pages != cuda.HugePages {
		return cuda.HostMemory{}, failure(call, cuda.BadArgument, "%d bytes, pages of kind %d", bytes,
			pages)
	}
	r, err := m.memory.alloc(call, bytes, onHost)
	if err != nil {
		return cuda.HostMemory{}, err
	}
	return cuda.HostMemoryOf(r.data), nil
}

// HostFree frees pinned memory when the device is idle. A program that still uses it gets a memory
// fault.
func (m *Machine) HostFree(h cuda.HostMemory) error {
	defer m.enter()()
	return m.free("ss_host_free", h.Ptr(), onHost, cuda.BadArgument)
}

func (m *Machine) free(call string, p cuda.Ptr, on place, foreign cuda.Code) error {
	if p == 0 {
		return nil
	}
	r := m.memory.find(p)
	if r == nil || r.at != p || r.on != on || r.freed {
		return failure(call, foreign, "%#x is not an allocation of this kind", uintptr(p))
	}
	err := m.drainAll()
	return cmp.Or(err, m.memory.free(call, r))
}
