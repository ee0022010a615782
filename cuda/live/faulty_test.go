package live_test

import (
	"sync"

	"sparseserve/cuda"
	"sparseserve/cuda/live"
)

// faulty is a machine whose n-th operation fails, and all after it, as after a fault on a GPU.
type faulty struct {
	live.Machine
	mu    sync.Mutex
	left  int // operations until the fault; below 0: none
	count int
	err   error
}

func (f *faulty) op(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.err == nil && f.count == f.left {
		f.err = &cuda.Error{Call: call, Code: cuda.Failed, Text: "an illegal memory access was encountered"}
	}
	return f.err
}

func counted1[A any](f *faulty, call string, do func(*A, cuda.Stream) error, a *A, s cuda.Stream) error {
	if err := f.op(call); err != nil {
		return err
	}
	return do(a, s)
}

func (f *faulty) Memcpy(a *cuda.MemcpyArgs, s cuda.Stream) error {
	return counted1(f, "ss_memcpy", f.Machine.Memcpy, a, s)
}
func (f *faulty) Carry(a *cuda.MemcpyArgs, s cuda.Stream) error {
	return counted1(f, "ss_carry", f.Machine.Carry, a, s)
}
func (f *faulty) FlashH2D(a *cuda.BlocksArgs, s cuda.Stream) error {
	return counted1(f, "ss_flash_h2d", f.Machine.FlashH2D, a, s)
}
func (f *faulty) GPUScatter(a *cuda.BlocksArgs, s cuda.Stream) error {
	return counted1(f, "ss_gpu_scatter", f.Machine.GPUScatter, a, s)
}
func (f *faulty) MemcpyBlocks(a *cuda.BlocksArgs, s cuda.Stream) error {
	return counted1(f, "ss_memcpy_blocks", f.Machine.MemcpyBlocks, a, s)
}
func (f *faulty) Lookup(a *cuda.LookupArgs, s cuda.Stream) error {
	return counted1(f, "ss_lookup", f.Machine.Lookup, a, s)
}
func (f *faulty) Table(a *cuda.TableArgs, s cuda.Stream) error {
	return counted1(f, "ss_table", f.Machine.Table, a, s)
}
func (f *faulty) PSAPipeline(a *cuda.PSAPipelineArgs, s cuda.Stream) error {
	return counted1(f, "ss_psa_pipeline", f.Machine.PSAPipeline, a, s)
}
func (f *faulty) EventRecord(e cuda.Event, s cuda.Stream) error {
	if err := f.op("ss_event_record"); err != nil {
		return err
	}
	return f.Machine.EventRecord(e, s)
}
func (f *faulty) StreamWait(s cuda.Stream, e cuda.Event) error {
	if err := f.op("ss_stream_wait"); err != nil {
		return err
	}
	return f.Machine.StreamWait(s, e)
}
func (f *faulty) Decode(a *cuda.DecodeArgs, s cuda.Stream) error {
	return counted1(f, "ss_decode", f.Machine.Decode, a, s)
}
func (f *faulty) Prefill(a *cuda.PrefillArgs, s cuda.Stream) error {
	return counted1(f, "ss_prefill", f.Machine.Prefill, a, s)
}
func (f *faulty) Digest(a *cuda.DigestArgs, s cuda.Stream) error {
	return counted1(f, "ss_digest", f.Machine.Digest, a, s)
}
func (f *faulty) Select(a *cuda.SelectArgs, s cuda.Stream) error {
	return counted1(f, "ss_select", f.Machine.Select, a, s)
}
func (f *faulty) Linear(a *cuda.LinearArgs, s cuda.Stream) error {
	return counted1(f, "ss_linear", f.Machine.Linear, a, s)
}
func (f *faulty) RMSNorm(a *cuda.RMSNormArgs, s cuda.Stream) error {
	return counted1(f, "ss_rmsnorm", f.Machine.RMSNorm, a, s)
}
func (f *faulty) KVWrite(a *cuda.RopeArgs, s cuda.Stream) error {
	return counted1(f, "ss_kv_write", f.Machine.KVWrite, a, s)
}
func (f *faulty) Argmax(a *cuda.ArgmaxArgs, s cuda.Stream) error {
	return counted1(f, "ss_argmax", f.Machine.Argmax, a, s)
}
func (f *faulty) FlashD2H(a *cuda.SaveArgs) error {
	if err := f.op("ss_flash_d2h"); err != nil {
		return err
	}
	return f.Machine.FlashD2H(a)
}
func (f *faulty) StreamSync(s cuda.Stream) error {
	if err := f.op("ss_stream_sync"); err != nil {
		return err
	}
	return f.Machine.StreamSync(s)
}
