package cuda

import (
	"bytes"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Session is the library on its own thread. Only functions run by Library.Do receive one, and must
// not keep it.
type Session struct {
	symbols   map[string]uintptr // every function of sparseserve.h
	lastError func() string
}

// Ptr is an address that the GPU can use: of device memory, or of pinned host memory. The Go
// collector does not see it.
type Ptr uintptr

// Stream and Event are handles of the CUDA runtime; Stream 0 is the default stream.
type (
	Stream uintptr
	Event  uintptr
)

// DeviceInfo describes the selected GPU.
type DeviceInfo struct {
	Name            string
	MemoryBytes     int64 // HBM
	MemoryBusyBytes int64 // in use now, by anyone
	L2Bytes         int64
	SMCount         int
	Capability      int // 10 * major + minor
	DriverVersion   int // CUDA version of the driver, 1000 * major + 10 * minor
	ToolkitVersion  int // of the toolkit that built the library, likewise
	CopyEngines     int
	SharedBytes     int // largest shared memory of a CTA
}

type deviceInfoC struct {
	name                                                                             [128]byte
	memory, busy, l2                                                                 int64
	smCount, capability, driverVersion, toolkitVersion, copyEngines, sharedMemoryCTA int32
}

// Init selects a GPU. It fails with NoDriver, NoDevice or Unsupported if there is no usable GPU.
func (s *Session) Init(device int) error {
	return s.call("ss_init", uintptr(int32(device)))
}

// Device describes the selected GPU.
func (s *Session) Device() (DeviceInfo, error) {
	var c deviceInfoC
	err := s.call("ss_device", uintptr(unsafe.Pointer(&c)))
	name, _, _ := bytes.Cut(c.name[:], []byte{0})
	return DeviceInfo{
		Name: string(name), MemoryBytes: c.memory, MemoryBusyBytes: c.busy, L2Bytes: c.l2,
		SMCount: int(c.smCount), Capability: int(c.capability),
		DriverVersion: int(c.driverVersion), ToolkitVersion: int(c.toolkitVersion),
		CopyEngines: int(c.copyEngines), SharedBytes: int(c.sharedMemoryCTA),
	}, err
}

// DeviceAlloc returns device memory.
func (s *Session) DeviceAlloc(bytes int64) (p Ptr, err error) {
	err = s.call("ss_device_alloc", uintptr(unsafe.Pointer(&p)), uintptr(bytes))
	return p, err
}

// DeviceFree frees device memory.
func (s *Session) DeviceFree(p Ptr) error { return s.call("ss_device_free", uintptr(p)) }

// HostPages is the kind of pages of pinned memory.
type HostPages int32

// Pages of the driver's choice, or huge pages where the kernel gives them.
const (
	DriverPages HostPages = iota
	HugePages
)

// HostMemory is pinned memory: the GPU uses Ptr, the program Bytes.
type HostMemory struct {
	base unsafe.Pointer
	size int64
}

// HostMemoryOf views ordinary memory as pinned memory, for devices other than a GPU.
func HostMemoryOf(b []byte) HostMemory {
	return HostMemory{base: unsafe.Pointer(unsafe.SliceData(b)), size: int64(len(b))}
}

// Ptr is the address for the GPU and for argument structs.
func (m HostMemory) Ptr() Ptr { return Ptr(uintptr(m.base)) }

// Bytes is the memory itself; it must not be used after HostFree.
func (m HostMemory) Bytes() []byte { return unsafe.Slice((*byte)(m.base), m.size) }

// Slice views pinned memory as values of T.
func Slice[T any](m HostMemory) []T {
	var t T
	return unsafe.Slice((*T)(m.base), m.size/int64(unsafe.Sizeof(t)))
}

// HostAlloc returns pinned memory. Pinning takes most of a second per GiB.
func (s *Session) HostAlloc(bytes int64, pages HostPages) (HostMemory, error) {
	m := HostMemory{size: bytes}
	err := s.call("ss_host_alloc", uintptr(unsafe.Pointer(&m.base)), uintptr(bytes),
		uintptr(pages))
	return m, err
}

// HostFree frees pinned memory.
func (s *Session) HostFree(m HostMemory) error {
	return s.call("ss_host_free", uintptr(m.base))
}

// StreamCreate returns a stream that does not wait for the default stream. It reuses the oldest
// destroyed stream, if any.
func (s *Session) StreamCreate(highPriority bool) (stream Stream, err error) {
	high := uintptr(0)
	if highPriority {
		high = 1
	}
	err = s.call("ss_stream_create", uintptr(unsafe.Pointer(&stream)), high)
	return stream, err
}

// StreamDestroy waits for a stream and keeps it for the next StreamCreate.
func (s *Session) StreamDestroy(stream Stream) error {
	return s.call("ss_stream_destroy", uintptr(stream))
}

// StreamSync blocks until the stream is idle.
func (s *Session) StreamSync(stream Stream) error {
	return s.call("ss_stream_sync", uintptr(stream))
}

// StreamWait makes later work of the stream wait for the event.
func (s *Session) StreamWait(stream Stream, event Event) error {
	return s.call("ss_stream_wait", uintptr(stream), uintptr(event))
}

// DeviceSync blocks until the GPU is idle.
func (s *Session) DeviceSync() error { return s.call("ss_device_sync") }

// EventCreate returns an event. Only a timed event has a time, and recording it takes time:
// microseconds, more while the link is busy.
func (s *Session) EventCreate(timed bool) (event Event, err error) {
	flag := uintptr(0)
	if timed {
		flag = 1
	}
	err = s.call("ss_event_create", uintptr(unsafe.Pointer(&event)), flag)
	return event, err
}

// EventDestroy ends an event.
func (s *Session) EventDestroy(event Event) error {
	return s.call("ss_event_destroy", uintptr(event))
}

// EventRecord puts the event at the end of the stream.
func (s *Session) EventRecord(event Event, stream Stream) error {
	return s.call("ss_event_record", uintptr(event), uintptr(stream))
}

// EventSync blocks until the event has passed.
func (s *Session) EventSync(event Event) error {
	return s.call("ss_event_sync", uintptr(event))
}

// EventMilliseconds returns the GPU time between two timed events that have passed.
func (s *Session) EventMilliseconds(from, to Event) (float64, error) {
	var ms float32
	err := s.call("ss_event_ms", uintptr(from), uintptr(to), uintptr(unsafe.Pointer(&ms)))
	return float64(ms), err
}

// Upload copies a Go slice to the GPU or to pinned memory; it returns when the copy is done.
func Upload[T any](m Machine, dst Ptr, data []T) error {
	return copySlice(m, data, func(host Ptr, bytes int64) MemcpyArgs {
		return MemcpyArgs{Dst: dst, Src: host, Bytes: bytes}
	})
}

// Download copies memory of the GPU or pinned memory to a Go slice; it returns when the copy is
// done.
func Download[T any](m Machine, data []T, src Ptr) error {
	return copySlice(m, data, func(host Ptr, bytes int64) MemcpyArgs {
		return MemcpyArgs{Dst: host, Src: src, Bytes: bytes}
	})
}

func copySlice[T any](m Machine, data []T, copyOf func(host Ptr, bytes int64) MemcpyArgs) error {
	if len(data) == 0 {
		return nil
	}
	var pin runtime.Pinner
	pin.Pin(&data[0])
	defer pin.Unpin()
	args := copyOf(Ptr(uintptr(unsafe.Pointer(&data[0]))),
		int64(len(data))*int64(unsafe.Sizeof(data[0])))
	if err := m.Launch(&args, 0); err != nil {
		return err
	}
	return m.StreamSync(0)
}

// call runs a C function. What its arguments point to stays where it is until the function returns.
//
//go:uintptrescapes
func (s *Session) call(function string, args ...uintptr) error {
	code, _, _ := purego.SyscallN(s.symbols[function], args...)
	if Code(int32(code)) == OK {
		return nil
	}
	return &Error{Call: function, Code: Code(int32(code)), Text: s.lastError()}
}
