package emulator

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// failure is an error of the library.
func failure(call string, code cuda.Code, format string, args ...any) error {
	return &cuda.Error{Call: call, Code: code, Text: fmt.Sprintf(format, args...)}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checks collects the requirements of a call on its arguments; the first unmet one is its error.
type checks struct {
	call string
	err  error
}

func (c *checks) need(ok bool, what string) {
	if !ok && c.err == nil {
		c.err = failure(c.call, cuda.BadArgument, "argument needs %s", what)
	}
}

// given requires every address.
func (c *checks) given(what string, addresses ...cuda.Ptr) {
	for _, p := range addresses {
		c.need(p != 0, what)
	}
}

// heads checks the head layout of all attention.
func (c *checks) heads(q, kv, dim int32) {
	c.need(kv > 0 && q > 0 && q%max(kv, 1) == 0, "KV heads that divide the query heads")
	c.need(dim == 64 || dim == 128, "64 or 128 values a head")
}

// paged checks the layout of paged decode.
func (c *checks) paged(q, kv, dim, blockTokens int32) {
	c.heads(q, kv, dim)
	c.need(q <= 8*max(kv, 0), "at most 8 query heads a KV head")
	c.need(blockTokens > 0 && blockTokens%16 == 0 && blockTokens <= 1024,
		"blocks of a multiple of 16 tokens, at most 1024")
}

// kernel is one operation with its own copy of the arguments, its requirements, and its effect.
// Arguments are read when the operation is launched, memory when it runs.
type kernel struct {
	check func(*checks)
	run   func(*access)
}

func bind[A any](args *A, check func(*checks, *A), run func(*access, *A)) kernel {
	if args == nil {
		return kernel{func(c *checks) { c.need(false, "arguments") }, nil}
	}
	a := *args
	return kernel{func(c *checks) { check(c, &a) }, func(m *access) { run(m, &a) }}
}

// kernelOf lists all operations of the machine; a new kernel adds a line.
func kernelOf(o cuda.Operation) kernel {
	switch a := o.(type) {
	case *cuda.MemcpyArgs:
		return bind(a, checkMemcpy, memcpy)
	case *cuda.MemsetArgs:
		return bind(a, checkMemset, memset)
	case *cuda.FillArgs:
		return bind(a, checkFill, fill)
	case *cuda.FlashH2DArgs:
		return bind((*cuda.BlocksArgs)(a), checkBlocks, copyBlocks)
	case *cuda.GPUScatterArgs:
		return bind((*cuda.BlocksArgs)(a), checkBlocks, copyBlocks)
	case *cuda.LookupArgs:
		return bind(a, checkLookup, lookup)
	case *cuda.TableArgs:
		return bind(a, checkTable, table)
	case *cuda.SwapInArgs:
		return bind(a, checkSwapIn, swapIn)
	case *cuda.HeadLinearArgs:
		return bind(a, checkHeadLinear, headLinear)
	case *cuda.RotateArgs:
		return bind(a, checkRotate, rotate)
	case *cuda.LatentWriteArgs:
		return bind(a, checkLatentWrite, latentWrite)
	case *cuda.IndexScoresArgs:
		return bind(a, checkIndexScores, indexScores)
	case *cuda.LatentAttendArgs:
		return bind(a, checkLatentAttend, latentAttend)
	case *cuda.DecodeArgs:
		return bind(a, checkDecode, decode)
	case *cuda.PSAArgs:
		return bind(a, checkPSA, psa)
	case *cuda.PrefillArgs:
		return bind(a, checkPrefill, prefill)
	case *cuda.DigestArgs:
		return bind(a, checkDigest, digest)
	case *cuda.ScoresArgs:
		return bind(a, checkScores, scores)
	case *cuda.TopKArgs:
		return bind(a, checkTopK, topK)
	case *cuda.SelectArgs:
		return bind(a, checkSelect, selectBlocks)
	case *cuda.LinearArgs:
		return bind(a, checkLinear, linear)
	case *cuda.EmbedArgs:
		return bind(a, checkEmbed, embed)
	case *cuda.RMSNormArgs:
		return bind(a, checkRMSNorm, rmsNorm)
	case *cuda.RopeArgs:
		return bind(a, checkRope, rope)
	case *cuda.KVWriteArgs:
		return bind((*cuda.RopeArgs)(a), checkKVWrite, kvWrite)
	case *cuda.SiluMulArgs:
		return bind(a, checkSiluMul, siluMul)
	case *cuda.ArgmaxArgs:
		return bind(a, checkArgmax, argmax)
	case *cuda.MIAttendArgs:
		return bind(a, checkMIAttend, miAttend)
	case *cuda.MIPoolArgs:
		return bind(a, checkMIPool, miPool)
	case *cuda.MIBlocksArgs:
		return bind(a, checkMIBlocks, miBlocks)
	case *cuda.MIEstimateArgs:
		return bind(a, checkMIEstimate, miEstimate)
	case *cuda.MITopKArgs:
		return bind(a, checkMITopK, miTopK)
	case *cuda.MILinesArgs:
		return bind(a, checkMILines, miLines)
	case *cuda.MIGatherArgs:
		return bind(a, checkMIGather, miGather)
	case *cuda.EmptyArgs:
		return kernel{func(*checks) {}, func(*access) {}}
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
	it, err := m.item(call, k)
	if err != nil {
		return err
	}
	return m.push(s, it)
}

// item checks a kernel's arguments.
func (m *Machine) item(call string, k kernel) (item, error) {
	c := checks{call: call}
	if k.check(&c); c.err != nil {
		return item{}, c.err
	}
	return item{run: func() error {
		return m.guard(call, func(a *access) error {
			k.run(a)
			return nil
		})
	}}, nil
}

// Workspace returns the bytes of scratch memory that an operation needs.
func (m *Machine) Workspace(o cuda.Operation) (bytes int64, err error) {
	c := checks{call: cuda.Function(o)}
	switch a := o.(type) {
	case *cuda.DecodeArgs:
		c.call = "ss_decode_workspace"
		if checkDecodeShape(&c, a); c.err == nil {
			bytes, _ = workspaceBytes(a)
		}
	case *cuda.PSAArgs:
		c.call = "ss_psa_state"
		if checkPSAShape(&c, a); c.err == nil {
			bytes = psaStateBytes(a)
		}
	case *cuda.LookupArgs:
		c.call = "ss_lookup_state"
		c.need(a.Rounds >= 0, "rounds >= 0")
		bytes = lookupStateBytes(a)
	case *cuda.MIEstimateArgs:
		c.call = "ss_mi_estimate_workspace"
		checkMIEstimateShape(&c, a)
		bytes = miEstimateBytes(a)
	case *cuda.MITopKArgs:
		c.call = "ss_mi_topk_workspace"
		checkMITopKShape(&c, a)
		bytes = miTopKBytes(a)
	default:
		c.need(false, "an operation with a workspace")
	}
	return bytes, c.err
}
