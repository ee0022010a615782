package cuda

import (
	"bytes"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Session is the library on its own thread. Only functions run by Library.Do have one; it must not
// leave them.
type Session struct {
	symbols   symbols
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

// Init selects a GPU. It fails with NoDriver, NoDevice or Unsupported where there is none to use.
func (s *Session) Init(device int) error {
	code, _, _ := purego.SyscallN(s.symbols.init.address, uintptr(int32(device)))
	return s.result(s.symbols.init, code)
}

// Device describes the selected GPU.
func (s *Session) Device() (DeviceInfo, error) {
	var c deviceInfoC
	code, _, _ := purego.SyscallN(s.symbols.device.address, uintptr(unsafe.Pointer(&c)))
	name, _, _ := bytes.Cut(c.name[:], []byte{0})
	return DeviceInfo{
		Name: string(name), MemoryBytes: c.memory, MemoryBusyBytes: c.busy, L2Bytes: c.l2, SMCount: int(c.smCount), Capability: int(c.capability),
		DriverVersion: int(c.driverVersion), ToolkitVersion: int(c.toolkitVersion), CopyEngines: int(c.copyEngines), SharedBytes: int(c.sharedMemoryCTA),
	}, s.result(s.symbols.device, code)
}

// DeviceAlloc returns device memory.
func (s *Session) DeviceAlloc(bytes int64) (Ptr, error) {
	var p Ptr
	code, _, _ := purego.SyscallN(s.symbols.deviceAlloc.address, uintptr(unsafe.Pointer(&p)),
		uintptr(bytes))
	return p, s.result(s.symbols.deviceAlloc, code)
}

// DeviceFree gives device memory back.
func (s *Session) DeviceFree(p Ptr) error { return s.handle(s.symbols.deviceFree, uintptr(p)) }

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

// HostAlloc returns pinned memory. Pinning takes most of a second a GiB.
func (s *Session) HostAlloc(bytes int64, pages HostPages) (HostMemory, error) {
	m := HostMemory{size: bytes}
	code, _, _ := purego.SyscallN(s.symbols.hostAlloc.address, uintptr(unsafe.Pointer(&m.base)),
		uintptr(bytes), uintptr(pages))
	return m, s.result(s.symbols.hostAlloc, code)
}

// HostFree gives pinned memory back.
func (s *Session) HostFree(m HostMemory) error {
	return s.handle(s.symbols.hostFree,
		uintptr(m.base))
}

// StreamCreate returns a stream that does not wait for the default stream: the first made of those
// that were given back, if any.
func (s *Session) StreamCreate(highPriority bool) (Stream, error) {
	var stream Stream
	high := uintptr(0)
	if highPriority {
		high = 1
	}
	code, _, _ := purego.SyscallN(s.symbols.streamCreate.address, uintptr(unsafe.Pointer(&stream)),
		high)
	return stream, s.result(s.symbols.streamCreate, code)
}

// StreamDestroy waits for a stream and gives it back.
func (s *Session) StreamDestroy(stream Stream) error {
	return s.handle(s.symbols.streamDestroy, uintptr(stream))
}

// StreamSync blocks until the stream is idle.
func (s *Session) StreamSync(stream Stream) error {
	return s.handle(s.symbols.streamSync, uintptr(stream))
}

// StreamWait makes what the stream gets from now on wait for the event.
func (s *Session) StreamWait(stream Stream, event Event) error {
	code, _, _ := purego.SyscallN(s.symbols.streamWait.address, uintptr(stream), uintptr(event))
	return s.result(s.symbols.streamWait, code)
}

// DeviceSync blocks until the GPU is idle.
func (s *Session) DeviceSync() error {
	code, _, _ := purego.SyscallN(s.symbols.deviceSync.address)
	return s.result(s.symbols.deviceSync, code)
}

// EventCreate returns an event that keeps time.
func (s *Session) EventCreate() (Event, error) {
	var event Event
	code, _, _ := purego.SyscallN(s.symbols.eventCreate.address, uintptr(unsafe.Pointer(&event)))
	return event, s.result(s.symbols.eventCreate, code)
}

// EventDestroy ends an event.
func (s *Session) EventDestroy(event Event) error {
	return s.handle(s.symbols.eventDestroy, uintptr(event))
}

// EventRecord puts the event at the end of the stream.
func (s *Session) EventRecord(event Event, stream Stream) error {
	code, _, _ := purego.SyscallN(s.symbols.eventRecord.address, uintptr(event), uintptr(stream))
	return s.result(s.symbols.eventRecord, code)
}

// EventSync blocks until the event has passed.
func (s *Session) EventSync(event Event) error {
	return s.handle(s.symbols.eventSync,
		uintptr(event))
}

// EventMilliseconds returns the GPU time between two events that have passed.
func (s *Session) EventMilliseconds(from, to Event) (float64, error) {
	var ms float32
	code, _, _ := purego.SyscallN(s.symbols.eventMs.address, uintptr(from), uintptr(to),
		uintptr(unsafe.Pointer(&ms)))
	return float64(ms), s.result(s.symbols.eventMs, code)
}

// Upload copies a Go slice to the GPU or to pinned memory; it returns when the copy is done.
func Upload[T any](s *Session, dst Ptr, data []T) error {
	if len(data) == 0 {
		return nil
	}
	return copySlice(s, unsafe.Pointer(unsafe.SliceData(data)),
		int64(len(data))*int64(unsafe.Sizeof(data[0])), dst, true)
}

// Download copies memory of the GPU or pinned memory to a Go slice; it returns when the copy is
// done.
func Download[T any](s *Session, data []T, src Ptr) error {
	if len(data) == 0 {
		return nil
	}
	return copySlice(s, unsafe.Pointer(unsafe.SliceData(data)),
		int64(len(data))*int64(unsafe.Sizeof(data[0])), src, false)
}

func copySlice(s *Session, data unsafe.Pointer, bytes int64, other Ptr, up bool) error {
	var pin runtime.Pinner
	pin.Pin(data)
	defer pin.Unpin()
	args := MemcpyArgs{Dst: Ptr(uintptr(data)), Src: other, Bytes: bytes}
	if up {
		args.Dst, args.Src = args.Src, args.Dst
	}
	if err := s.Launch(&args, 0); err != nil {
		return err
	}
	return s.StreamSync(0)
}

// handle calls a function of one handle or pointer.
func (s *Session) handle(f symbol, h uintptr) error {
	code, _, _ := purego.SyscallN(f.address, h)
	return s.result(f, code)
}
