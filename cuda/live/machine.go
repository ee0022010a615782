package live

import "sparseserve/cuda"

// Machine is what the device runs on: a GPU behind the library (*cuda.Session) or the same operations in Go (*emulator.Machine). Shapes and
// equations are documented in cuda/sparseserve.h. A stream runs its operations in order; pinned memory is read when an operation runs.
//
// Three threads call it: the server's gives out memory, makes streams and events and waits for them; that of the queue puts work on streams (queue.go);
// that of the saver brings blocks to DRAM (save.go).
type Machine interface {
	Init(device int) error // once on every OS thread that calls the others
	Device() (cuda.DeviceInfo, error)

	DeviceAlloc(bytes int64) (cuda.Ptr, error)
	DeviceFree(cuda.Ptr) error
	HostAlloc(bytes int64, pages cuda.HostPages) (cuda.HostMemory, error)
	HostFree(cuda.HostMemory) error
	StreamCreate(highPriority bool) (cuda.Stream, error)
	StreamDestroy(cuda.Stream) error
	StreamSync(cuda.Stream) error
	StreamWait(cuda.Stream, cuda.Event) error
	DeviceSync() error
	EventCreate() (cuda.Event, error)
	EventDestroy(cuda.Event) error
	EventRecord(cuda.Event, cuda.Stream) error
	EventSync(cuda.Event) error
	EventMilliseconds(from, to cuda.Event) (float64, error)

	Memcpy(*cuda.MemcpyArgs, cuda.Stream) error
	Carry(*cuda.MemcpyArgs, cuda.Stream) error
	Memset(*cuda.MemsetArgs, cuda.Stream) error
	Fill(*cuda.FillArgs, cuda.Stream) error
	FlashH2D(*cuda.BlocksArgs, cuda.Stream) error
	GPUScatter(*cuda.BlocksArgs, cuda.Stream) error
	MemcpyBlocks(*cuda.BlocksArgs, cuda.Stream) error
	LookupState(*cuda.LookupArgs) (int64, error)
	Lookup(*cuda.LookupArgs, cuda.Stream) error
	Table(*cuda.TableArgs, cuda.Stream) error
	SaverCreate(threads int, chunkBytes int64, stages int) (cuda.Saver, error)
	SaverDestroy(cuda.Saver) error
	FlashD2H(*cuda.SaveArgs) error

	DecodeWorkspace(*cuda.DecodeArgs) (int64, error)
	Decode(*cuda.DecodeArgs, cuda.Stream) error
	PSAState(*cuda.PSAArgs) (int64, error)
	PSA(*cuda.PSAArgs, cuda.Stream) error
	PSAPipeline(*cuda.PSAPipelineArgs, cuda.Stream) error
	Prefill(*cuda.PrefillArgs, cuda.Stream) error
	Digest(*cuda.DigestArgs, cuda.Stream) error
	Select(*cuda.SelectArgs, cuda.Stream) error

	LinearOpen(path string) error
	Linear(*cuda.LinearArgs, cuda.Stream) error
	Embed(*cuda.EmbedArgs, cuda.Stream) error
	RMSNorm(*cuda.RMSNormArgs, cuda.Stream) error
	Rope(*cuda.RopeArgs, cuda.Stream) error
	KVWrite(*cuda.RopeArgs, cuda.Stream) error
	SiluMul(*cuda.SiluMulArgs, cuda.Stream) error
	Argmax(*cuda.ArgmaxArgs, cuda.Stream) error
}
