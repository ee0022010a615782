package cuda

import (
	"fmt"
	"unsafe"
)

// Operation is work for a stream: a pointer to one of the argument structs. Shapes and equations
// are documented in sparseserve.h.
type Operation interface {
	operation() (op int32, args unsafe.Pointer)
}

// functions are the C functions of the operations, in the order of the SS_OP_ constants. A new
// kernel adds its name here, its struct to args.go and its constant to the struct's method below.
var functions = [...]string{
	"ss_empty", "ss_memcpy", "ss_memset", "ss_fill",
	"ss_flash_h2d", "ss_gpu_scatter", "ss_memcpy_blocks", "ss_flash_d2h",
	"ss_decode", "ss_psa", "ss_prefill",
	"ss_digest", "ss_scores", "ss_topk", "ss_select",
	"ss_linear", "ss_embed", "ss_rmsnorm", "ss_rope", "ss_silu_mul", "ss_argmax",
	"ss_lookup", "ss_table", "ss_kv_write",
	"ss_mi_attend", "ss_mi_pool", "ss_mi_blocks", "ss_mi_estimate", "ss_mi_topk", "ss_mi_lines",
	"ss_mi_gather", "ss_swap_in",
	"ss_head_linear", "ss_rotate", "ss_latent_write", "ss_index_scores", "ss_latent_attend",
}

func (a *EmptyArgs) operation() (int32, unsafe.Pointer)        { return 0, unsafe.Pointer(a) }
func (a *MemcpyArgs) operation() (int32, unsafe.Pointer)       { return 1, unsafe.Pointer(a) }
func (a *MemsetArgs) operation() (int32, unsafe.Pointer)       { return 2, unsafe.Pointer(a) }
func (a *FillArgs) operation() (int32, unsafe.Pointer)         { return 3, unsafe.Pointer(a) }
func (a *FlashH2DArgs) operation() (int32, unsafe.Pointer)     { return 4, unsafe.Pointer(a) }
func (a *GPUScatterArgs) operation() (int32, unsafe.Pointer)   { return 5, unsafe.Pointer(a) }
func (a *MemcpyBlocksArgs) operation() (int32, unsafe.Pointer) { return 6, unsafe.Pointer(a) }
func (a *SaveArgs) operation() (int32, unsafe.Pointer)         { return 7, unsafe.Pointer(a) }
func (a *DecodeArgs) operation() (int32, unsafe.Pointer)       { return 8, unsafe.Pointer(a) }
func (a *PSAArgs) operation() (int32, unsafe.Pointer)          { return 9, unsafe.Pointer(a) }
func (a *PrefillArgs) operation() (int32, unsafe.Pointer)      { return 10, unsafe.Pointer(a) }
func (a *DigestArgs) operation() (int32, unsafe.Pointer)       { return 11, unsafe.Pointer(a) }
func (a *ScoresArgs) operation() (int32, unsafe.Pointer)       { return 12, unsafe.Pointer(a) }
func (a *TopKArgs) operation() (int32, unsafe.Pointer)         { return 13, unsafe.Pointer(a) }
func (a *SelectArgs) operation() (int32, unsafe.Pointer)       { return 14, unsafe.Pointer(a) }
func (a *LinearArgs) operation() (int32, unsafe.Pointer)       { return 15, unsafe.Pointer(a) }
func (a *EmbedArgs) operation() (int32, unsafe.Pointer)        { return 16, unsafe.Pointer(a) }
func (a *RMSNormArgs) operation() (int32, unsafe.Pointer)      { return 17, unsafe.Pointer(a) }
func (a *RopeArgs) operation() (int32, unsafe.Pointer)         { return 18, unsafe.Pointer(a) }
func (a *SiluMulArgs) operation() (int32, unsafe.Pointer)      { return 19, unsafe.Pointer(a) }
func (a *ArgmaxArgs) operation() (int32, unsafe.Pointer)       { return 20, unsafe.Pointer(a) }
func (a *LookupArgs) operation() (int32, unsafe.Pointer)       { return 21, unsafe.Pointer(a) }
func (a *TableArgs) operation() (int32, unsafe.Pointer)        { return 22, unsafe.Pointer(a) }
func (a *KVWriteArgs) operation() (int32, unsafe.Pointer)      { return 23, unsafe.Pointer(a) }
func (a *MIAttendArgs) operation() (int32, unsafe.Pointer)     { return 24, unsafe.Pointer(a) }
func (a *MIPoolArgs) operation() (int32, unsafe.Pointer)       { return 25, unsafe.Pointer(a) }
func (a *MIBlocksArgs) operation() (int32, unsafe.Pointer)     { return 26, unsafe.Pointer(a) }
func (a *MIEstimateArgs) operation() (int32, unsafe.Pointer)   { return 27, unsafe.Pointer(a) }
func (a *MITopKArgs) operation() (int32, unsafe.Pointer)       { return 28, unsafe.Pointer(a) }
func (a *MILinesArgs) operation() (int32, unsafe.Pointer)      { return 29, unsafe.Pointer(a) }
func (a *MIGatherArgs) operation() (int32, unsafe.Pointer)     { return 30, unsafe.Pointer(a) }
func (a *SwapInArgs) operation() (int32, unsafe.Pointer)       { return 31, unsafe.Pointer(a) }
func (a *HeadLinearArgs) operation() (int32, unsafe.Pointer)   { return 32, unsafe.Pointer(a) }
func (a *RotateArgs) operation() (int32, unsafe.Pointer)       { return 33, unsafe.Pointer(a) }
func (a *LatentWriteArgs) operation() (int32, unsafe.Pointer)  { return 34, unsafe.Pointer(a) }
func (a *IndexScoresArgs) operation() (int32, unsafe.Pointer)  { return 35, unsafe.Pointer(a) }
func (a *LatentAttendArgs) operation() (int32, unsafe.Pointer) { return 36, unsafe.Pointer(a) }

// Function returns the name of an operation's C function.
func Function(o Operation) string {
	op, _ := o.operation()
	return functions[op]
}

// Launch enqueues an operation. SaveArgs blocks, and its stream is not used. Arguments are read
// before Launch returns.
func (s *Session) Launch(o Operation, stream Stream) error {
	op, args := o.operation()
	return s.call(functions[op], uintptr(args), uintptr(stream))
}

// OnHopper reports whether a MIAttendArgs runs on wgmma and the bulk copy engine.
func (s *Session) OnHopper(a *MIAttendArgs) (bool, error) {
	var yes int32
	err := s.call("ss_mi_kernel", uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(&yes)))
	return yes != 0, err
}

// Workspace returns the bytes of scratch memory that an operation needs. DecodeArgs.Workspace,
// PSAArgs.State and LookupArgs.State must be zeroed once after allocation; the workspaces of
// MIEstimateArgs and MITopKArgs need not be.
func (s *Session) Workspace(o Operation) (bytes int64, err error) {
	var f string
	switch o.(type) {
	case *DecodeArgs:
		f = "ss_decode_workspace"
	case *PSAArgs:
		f = "ss_psa_state"
	case *LookupArgs:
		f = "ss_lookup_state"
	case *MIEstimateArgs:
		f = "ss_mi_estimate_workspace"
	case *MITopKArgs:
		f = "ss_mi_topk_workspace"
	default:
		return 0, fmt.Errorf("%s has no workspace", Function(o))
	}
	_, args := o.operation()
	err = s.call(f, uintptr(args), uintptr(unsafe.Pointer(&bytes)))
	return bytes, err
}
