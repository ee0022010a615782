package emulator

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// failure is an error of the library.
func failure(call string, code cuda.Code, format string, args ...any) error {
	return &cuda.Error{Call: call, Code: code, Text: fmt.Sprintf(format, args...)}
}

// need fails the operation with the library's error unless ok: it states a requirement that the
// library checks and no access shows.
func (a *access) need(ok bool, what string) {
	if !ok {
		panic(failure(a.call, cuda.BadArgument, "argument needs %s", what))
	}
}

// heads checks the head layout of all attention.
func (a *access) heads(q, kv, dim int32) {
	a.need(kv > 0 && q > 0 && q%max(kv, 1) == 0, "KV heads that divide the query heads")
	a.need(dim == 64 || dim == 128, "64 or 128 values a head")
}

// paged checks the layout of paged decode.
func (a *access) paged(q, kv, dim, blockTokens int32) {
	a.heads(q, kv, dim)
	a.need(q <= 8*kv, "at most 8 query heads a KV head")
	a.need(blockTokens > 0 && blockTokens%16 == 0 && blockTokens <= 1024,
		"blocks of a multiple of 16 tokens, at most 1024")
}

// kernel is one operation with its own copy of the arguments. Arguments are read when the operation
// is launched; they are checked, and memory is read, when it runs.
type kernel func(*access)

func bind[A any](args *A, run func(*access, *A)) kernel {
	if args == nil {
		return func(m *access) { m.need(false, "arguments") }
	}
	a := *args
	return func(m *access) { run(m, &a) }
}

// kernelOf lists all operations of the machine; a new kernel adds a line.
func kernelOf(o cuda.Operation) kernel {
	switch a := o.(type) {
	case *cuda.MemcpyArgs:
		return bind(a, memcpy)
	case *cuda.MemsetArgs:
		return bind(a, memset)
	case *cuda.FillArgs:
		return bind(a, fill)
	case *cuda.FlashH2DArgs:
		return bind((*cuda.BlocksArgs)(a), copyBlocks)
	case *cuda.GPUScatterArgs:
		return bind((*cuda.BlocksArgs)(a), copyBlocks)
	case *cuda.LookupArgs:
		return bind(a, lookup)
	case *cuda.TableArgs:
		return bind(a, table)
	case *cuda.SwapInArgs:
		return bind(a, swapIn)
	case *cuda.HeadLinearArgs:
		return bind(a, headLinear)
	case *cuda.RotateArgs:
		return bind(a, rotate)
	case *cuda.LatentWriteArgs:
		return bind(a, latentWrite)
	case *cuda.IndexScoresArgs:
		return bind(a, indexScores)
	case *cuda.LatentAttendArgs:
		return bind(a, latentAttend)
	case *cuda.DecodeArgs:
		return bind(a, decode)
	case *cuda.PSAArgs:
		return bind(a, psa)
	case *cuda.PrefillArgs:
		return bind(a, prefill)
	case *cuda.DigestArgs:
		return bind(a, digest)
	case *cuda.ScoresArgs:
		return bind(a, scores)
	case *cuda.TopKArgs:
		return bind(a, topK)
	case *cuda.SelectArgs:
		return bind(a, selectBlocks)
	case *cuda.LinearArgs:
		return bind(a, linear)
	case *cuda.EmbedArgs:
		return bind(a, embed)
	case *cuda.RMSNormArgs:
		return bind(a, rmsNorm)
	case *cuda.RopeArgs:
		return bind(a, rope)
	case *cuda.KVWriteArgs:
		return bind((*cuda.RopeArgs)(a), kvWrite)
	case *cuda.SiluMulArgs:
		return bind(a, siluMul)
	case *cuda.ArgmaxArgs:
		return bind(a, argmax)
	case *cuda.MIAttendArgs:
		return bind(a, miAttend)
	case *cuda.MIPoolArgs:
		return bind(a, miPool)
	case *cuda.MIBlocksArgs:
		return bind(a, miBlocks)
	case *cuda.MIEstimateArgs:
		return bind(a, miEstimate)
	case *cuda.MITopKArgs:
		return bind(a, miTopK)
	case *cuda.MILinesArgs:
		return bind(a, miLines)
	case *cuda.MIGatherArgs:
		return bind(a, miGather)
	case *cuda.EmptyArgs:
		return func(*access) {}
	}
	panic("emulator: no kernel for " + cuda.Function(o))
}

// Launch checks the arguments and puts the operation on the stream.
func (m *Machine) Launch(o cuda.Operation, on cuda.Stream) error {
	defer m.enter()()
	call := cuda.Function(o)
	if a, ok := o.(*cuda.SaveArgs); ok {
		if err := m.saveStart(call, a); err != nil {
			return err
		}
		return m.saveWait(call, a.Saver)
	}
	s, err := m.stream(call, on)
	if err != nil {
		return err
	}
	if a, ok := o.(*cuda.MemcpyBlocksArgs); ok {
		return m.memcpyBlocks(call, (*cuda.BlocksArgs)(a), s)
	}
	return m.enqueue(call, kernelOf(o), s)
}

func (m *Machine) enqueue(call string, k kernel, s *stream) error {
	return m.push(s, item{run: func() error {
		return m.guard(call, func(a *access) error {
			k(a)
			return nil
		})
	}})
}

// Workspace returns the bytes of scratch memory that an operation needs.
func (m *Machine) Workspace(o cuda.Operation) (bytes int64, err error) {
	err = m.guard(cuda.Function(o)+"_workspace", func(m *access) error {
		switch a := o.(type) {
		case *cuda.DecodeArgs:
			checkDecodeShape(m, a)
			bytes, _ = workspaceBytes(a)
		case *cuda.PSAArgs:
			checkPSAShape(m, a)
			bytes = psaStateBytes(a)
		case *cuda.LookupArgs:
			bytes = lookupStateBytes(a)
		case *cuda.MIEstimateArgs:
			checkMIEstimate(m, a)
			bytes = miEstimateBytes(a)
		case *cuda.MITopKArgs:
			checkMITopK(m, a)
			bytes = miTopKBytes(a)
		default:
			m.need(false, "an operation with a workspace")
		}
		return nil
	})
	return bytes, err
}
