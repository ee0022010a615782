package cuda

// Machine runs operations: a GPU through the library (*Session), or an emulator in Go
// (*emulator.Machine). A stream runs its operations in order; pinned memory is read when an
// operation runs.
type Machine interface {
	Init(device int) error // once on every OS thread that calls the others
	Device() (DeviceInfo, error)

	DeviceAlloc(bytes int64) (Ptr, error)
	DeviceFree(Ptr) error
	HostAlloc(bytes int64, pages HostPages) (HostMemory, error)
	HostFree(HostMemory) error

	StreamCreate(highPriority bool) (Stream, error)
	StreamDestroy(Stream) error
	StreamSync(Stream) error
	StreamWait(Stream, Event) error

	EventCreate(timed bool) (Event, error)
	EventDestroy(Event) error
	EventRecord(Event, Stream) error
	EventSync(Event) error
	EventMilliseconds(from, to Event) (float64, error)

	SaverCreate(threads int, chunkBytes int64, stages int) (Saver, error)
	SaverDestroy(Saver) error

	Launch(Operation, Stream) error
	Workspace(Operation) (bytes int64, err error)
}

var _ Machine = (*Session)(nil)
