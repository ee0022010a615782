package cuda

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Saver is the staging buffer and the thread pool of FlashD2H.
type Saver uintptr

// Memcpy copies on the stream.
func (s *Session) Memcpy(a *MemcpyArgs, stream Stream) error {
	return s.op(s.symbols.memcpy, unsafe.Pointer(a), stream)
}

// Carry copies from or to pinned memory, or within the device's, with one kernel: for some KiB between two kernels. Dst and Src have the same
// remainder modulo 16.
func (s *Session) Carry(a *MemcpyArgs, stream Stream) error {
	return s.op(s.symbols.carry, unsafe.Pointer(a), stream)
}

// Memset sets bytes on the stream.
func (s *Session) Memset(a *MemsetArgs, stream Stream) error {
	return s.op(s.symbols.memset, unsafe.Pointer(a), stream)
}

// Fill writes random fp16 values.
func (s *Session) Fill(a *FillArgs, stream Stream) error {
	return s.op(s.symbols.fill, unsafe.Pointer(a), stream)
}

// Empty launches an empty kernel.
func (s *Session) Empty(stream Stream) error { return s.op(s.symbols.empty, nil, stream) }

// FlashH2D gathers pinned host blocks with one kernel; Src and Dst are readable by the GPU.
func (s *Session) FlashH2D(a *BlocksArgs, stream Stream) error {
	return s.op(s.symbols.flashH2D, unsafe.Pointer(a), stream)
}

// GPUScatter writes pinned host blocks with one kernel.
func (s *Session) GPUScatter(a *BlocksArgs, stream Stream) error {
	return s.op(s.symbols.gpuScatter, unsafe.Pointer(a), stream)
}

// MemcpyBlocks copies with one memcpy a block; Src and Dst are pinned arrays.
func (s *Session) MemcpyBlocks(a *BlocksArgs, stream Stream) error {
	return s.op(s.symbols.memcpyBlocks, unsafe.Pointer(a), stream)
}

// MemcpyBatch copies with the batched memcpy API: Unsupported before CUDA 12.8. It needs a stream of its own.
func (s *Session) MemcpyBatch(a *BlocksArgs, stream Stream) error {
	return s.op(s.symbols.memcpyBatch, unsafe.Pointer(a), stream)
}

// LookupState returns the bytes that LookupArgs.State needs, to be zeroed once.
func (s *Session) LookupState(a *LookupArgs) (int64, error) {
	return s.size(s.symbols.lookupState, unsafe.Pointer(a))
}

// Lookup finds the slots of listed blocks.
func (s *Session) Lookup(a *LookupArgs, stream Stream) error {
	return s.op(s.symbols.lookup, unsafe.Pointer(a), stream)
}

// Table changes entries of tables.
func (s *Session) Table(a *TableArgs, stream Stream) error {
	return s.op(s.symbols.tables, unsafe.Pointer(a), stream)
}

// SaverCreate starts threads that scatter, with stages staging buffers of chunkBytes each.
func (s *Session) SaverCreate(threads int, chunkBytes int64, stages int) (Saver, error) {
	var saver Saver
	code, _, _ := purego.SyscallN(s.symbols.saverCreate.address, uintptr(unsafe.Pointer(&saver)), uintptr(int32(threads)), uintptr(chunkBytes), uintptr(int32(stages)))
	return saver, s.result(s.symbols.saverCreate, code)
}

// SaverDestroy waits for the running save and ends the threads.
func (s *Session) SaverDestroy(saver Saver) error {
	return s.handle(s.symbols.saverDestroy, uintptr(saver))
}

// SaveStart starts a save and returns at once.
func (s *Session) SaveStart(a *SaveArgs) error {
	return s.op(s.symbols.saveStart, unsafe.Pointer(a), 0)
}

// SaveWait blocks until the running save has written every block.
func (s *Session) SaveWait(saver Saver) error { return s.handle(s.symbols.saveWait, uintptr(saver)) }

// FlashD2H saves and waits.
func (s *Session) FlashD2H(a *SaveArgs) error { return s.op(s.symbols.flashD2H, unsafe.Pointer(a), 0) }

// DecodeWorkspace returns the bytes that DecodeArgs.Workspace needs, to be zeroed once.
func (s *Session) DecodeWorkspace(a *DecodeArgs) (int64, error) {
	return s.size(s.symbols.decodeWorkspace, unsafe.Pointer(a))
}

// Decode is decode attention.
func (s *Session) Decode(a *DecodeArgs, stream Stream) error {
	return s.op(s.symbols.decode, unsafe.Pointer(a), stream)
}

// PSAState returns the bytes that PSAArgs.State needs, to be zeroed once.
func (s *Session) PSAState(a *PSAArgs) (int64, error) {
	return s.size(s.symbols.psaState, unsafe.Pointer(a))
}

// PSA runs microbatches of progressive sparse attention.
func (s *Session) PSA(a *PSAArgs, stream Stream) error {
	return s.op(s.symbols.psa, unsafe.Pointer(a), stream)
}

// PSAPipeline enqueues PSA with loads on a second stream, and waits only for what tells it whether to go on. The flag must be one that no earlier
// work still sets.
func (s *Session) PSAPipeline(a *PSAPipelineArgs, stream Stream) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	if a.PSA != nil {
		pin.Pin(a.PSA)
	}
	if a.Loaded != nil {
		pin.Pin(a.Loaded)
	}
	return s.op(s.symbols.psaPipeline, unsafe.Pointer(a), stream)
}

// Prefill is causal prefill attention of one request.
func (s *Session) Prefill(a *PrefillArgs, stream Stream) error {
	return s.op(s.symbols.prefill, unsafe.Pointer(a), stream)
}

// Digest writes the digests of full blocks.
func (s *Session) Digest(a *DigestArgs, stream Stream) error {
	return s.op(s.symbols.digest, unsafe.Pointer(a), stream)
}

// Scores writes criticality scores.
func (s *Session) Scores(a *ScoresArgs, stream Stream) error {
	return s.op(s.symbols.scores, unsafe.Pointer(a), stream)
}

// TopK chooses blocks by given scores.
func (s *Session) TopK(a *TopKArgs, stream Stream) error {
	return s.op(s.symbols.topk, unsafe.Pointer(a), stream)
}

// Select scores and chooses blocks in one kernel.
func (s *Session) Select(a *SelectArgs, stream Stream) error {
	return s.op(s.symbols.sel, unsafe.Pointer(a), stream)
}

// LinearOpen loads cuBLAS from path; "" searches the usual names.
func (s *Session) LinearOpen(path string) error {
	c := append([]byte(path), 0)
	return s.op(s.symbols.linearOpen, unsafe.Pointer(&c[0]), 0)
}

// Linear is y = x w^T.
func (s *Session) Linear(a *LinearArgs, stream Stream) error {
	return s.op(s.symbols.linear, unsafe.Pointer(a), stream)
}

// Embed gathers the embeddings of tokens.
func (s *Session) Embed(a *EmbedArgs, stream Stream) error {
	return s.op(s.symbols.embed, unsafe.Pointer(a), stream)
}

// RMSNorm normalises rows, after adding to the residual if there is one.
func (s *Session) RMSNorm(a *RMSNormArgs, stream Stream) error {
	return s.op(s.symbols.rmsnorm, unsafe.Pointer(a), stream)
}

// Rope rotates q and k and stores k and v.
func (s *Session) Rope(a *RopeArgs, stream Stream) error {
	return s.op(s.symbols.rope, unsafe.Pointer(a), stream)
}

// KVWrite is the part of Rope that stores to KV blocks.
func (s *Session) KVWrite(a *RopeArgs, stream Stream) error {
	return s.op(s.symbols.kvWrite, unsafe.Pointer(a), stream)
}

// SiluMul is SwiGLU's activation.
func (s *Session) SiluMul(a *SiluMulArgs, stream Stream) error {
	return s.op(s.symbols.siluMul, unsafe.Pointer(a), stream)
}

// Argmax finds greedy tokens.
func (s *Session) Argmax(a *ArgmaxArgs, stream Stream) error {
	return s.op(s.symbols.argmax, unsafe.Pointer(a), stream)
}

func (s *Session) size(f symbol, args unsafe.Pointer) (int64, error) {
	var bytes int64
	code, _, _ := purego.SyscallN(f.address, uintptr(args), uintptr(unsafe.Pointer(&bytes)))
	runtime.KeepAlive(args)
	return bytes, s.result(f, code)
}
