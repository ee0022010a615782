package emulator

import (
	"fmt"
	"reflect"
	"slices"

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

// operation binds the arguments of one type, a pointer, to its kernel.
type operation struct {
	of   reflect.Type
	bind func(args cuda.Operation) kernel
}

func op[A any](run func(*access, *A)) operation {
	return operation{reflect.TypeFor[*A](), func(o cuda.Operation) kernel {
		args := any(o).(*A)
		if args == nil {
			return func(m *access) { m.need(false, "arguments") }
		}
		a := *args
		return func(m *access) { run(m, &a) }
	}}
}

// operations lists all operations of the machine; a new kernel adds itself.
var operations = []operation{
	op(memcpy), op(memset), op(fill), op(lookup), op(table), op(swapIn), op(headLinear),
	op(rotate), op(latentWrite), op(indexScores), op(latentAttend), op(decode), op(psa),
	op(prefill), op(digest), op(scores), op(topK), op(selectBlocks), op(linear), op(embed),
	op(rmsNorm), op(rope), op(siluMul), op(argmax), op(miAttend), op(miPool), op(miBlocks),
	op(miEstimate), op(miTopK), op(miLines), op(miGather),
	op(func(*access, *cuda.EmptyArgs) {}),
	op(func(m *access, a *cuda.FlashH2DArgs) { copyBlocks(m, (*cuda.BlocksArgs)(a)) }),
	op(func(m *access, a *cuda.GPUScatterArgs) { copyBlocks(m, (*cuda.BlocksArgs)(a)) }),
	op(func(m *access, a *cuda.KVWriteArgs) { kvWrite(m, (*cuda.RopeArgs)(a)) }),
}

func kernelOf(o cuda.Operation) kernel {
	i := slices.IndexFunc(operations, func(p operation) bool { return p.of == reflect.TypeOf(o) })
	if i < 0 {
		panic("emulator: no kernel for " + cuda.Function(o))
	}
	return operations[i].bind(o)
}

// Launch checks the arguments and puts the operation on the stream.
func (m *Machine) Launch(o cuda.Operation, on cuda.Stream) error {
	return m.call(cuda.Function(o), func(a *access) error {
		if args, ok := o.(*cuda.SaveArgs); ok {
			return m.save(a, args)
		}
		s := m.stream(a, on)
		if args, ok := o.(*cuda.MemcpyBlocksArgs); ok {
			return m.memcpyBlocks(a.onHost(), (*cuda.BlocksArgs)(args), s)
		}
		return m.enqueue(a.call, kernelOf(o), s)
	})
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
