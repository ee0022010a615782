package live

import (
	"fmt"
	"time"

	"sparseserve/cuda"
)

// call is one call of a queue, with the arguments of its kind.
type call struct {
	kind   callKind
	stream cuda.Stream
	step   int64
	layer  int

	event   cuda.Event
	copying cuda.MemcpyArgs
	set     cuda.MemsetArgs
	fill    cuda.FillArgs
	blocks  cuda.BlocksArgs
	lookup  cuda.LookupArgs
	table   cuda.TableArgs
	decode  cuda.DecodeArgs
	psa     cuda.PSAArgs
	rounds  rounds
	prefill cuda.PrefillArgs
	digest  cuda.DigestArgs
	sel     cuda.SelectArgs
	linear  cuda.LinearArgs
	embed   cuda.EmbedArgs
	norm    cuda.RMSNormArgs
	rope    cuda.RopeArgs
	silu    cuda.SiluMulArgs
	argmax  cuda.ArgmaxArgs
	saver   *saver
	job     job
}

type callKind int

const (
	callEnd callKind = iota // of the thread
	callRecord
	callWait
	callMemcpy
	callCarry
	callMemset
	callFill
	callFlashH2D
	callGPUScatter
	callMemcpyBlocks
	callLookup
	callTable
	callDecode
	callPSA
	callRounds
	callPrefill
	callDigest
	callSelect
	callLinear
	callEmbed
	callRMSNorm
	callRope
	callKVWrite
	callSiluMul
	callArgmax
	callHand
)

func (c *call) carryOut(q *queue) error {
	m := q.Machine
	switch c.kind {
	case callEnd:
		return nil
	case callRecord:
		return m.EventRecord(c.event, c.stream)
	case callWait:
		return m.StreamWait(c.stream, c.event)
	case callMemcpy:
		return m.Memcpy(&c.copying, c.stream)
	case callCarry:
		return m.Carry(&c.copying, c.stream)
	case callMemset:
		return m.Memset(&c.set, c.stream)
	case callFill:
		return m.Fill(&c.fill, c.stream)
	case callFlashH2D:
		return m.FlashH2D(&c.blocks, c.stream)
	case callGPUScatter:
		return m.GPUScatter(&c.blocks, c.stream)
	case callMemcpyBlocks:
		return m.MemcpyBlocks(&c.blocks, c.stream)
	case callLookup:
		return m.Lookup(&c.lookup, c.stream)
	case callTable:
		return m.Table(&c.table, c.stream)
	case callDecode:
		return m.Decode(&c.decode, c.stream)
	case callPSA:
		return m.PSA(&c.psa, c.stream)
	case callRounds:
		return c.rounds.carryOut(q, c.stream)
	case callPrefill:
		return m.Prefill(&c.prefill, c.stream)
	case callDigest:
		return m.Digest(&c.digest, c.stream)
	case callSelect:
		return m.Select(&c.sel, c.stream)
	case callLinear:
		return m.Linear(&c.linear, c.stream)
	case callEmbed:
		return m.Embed(&c.embed, c.stream)
	case callRMSNorm:
		return m.RMSNorm(&c.norm, c.stream)
	case callRope:
		return m.Rope(&c.rope, c.stream)
	case callKVWrite:
		return m.KVWrite(&c.rope, c.stream)
	case callSiluMul:
		return m.SiluMul(&c.silu, c.stream)
	case callArgmax:
		return m.Argmax(&c.argmax, c.stream)
	case callHand:
		c.saver.jobs <- c.job
		return nil
	}
	return fmt.Errorf("live: call %d is not known", c.kind)
}

func (q *queue) EventRecord(e cuda.Event, s cuda.Stream) error {
	q.next(callRecord, s, 0).event = e
	return q.ask()
}

func (q *queue) StreamWait(s cuda.Stream, e cuda.Event) error {
	q.next(callWait, s, 0).event = e
	return q.ask()
}

func (q *queue) Memcpy(a *cuda.MemcpyArgs, s cuda.Stream) error {
	q.next(callMemcpy, s, 1).copying = *a
	return q.ask()
}

func (q *queue) Carry(a *cuda.MemcpyArgs, s cuda.Stream) error {
	q.next(callCarry, s, 1).copying = *a
	return q.ask()
}

func (q *queue) Memset(a *cuda.MemsetArgs, s cuda.Stream) error {
	q.next(callMemset, s, 1).set = *a
	return q.ask()
}

func (q *queue) Fill(a *cuda.FillArgs, s cuda.Stream) error {
	q.next(callFill, s, 0).fill = *a
	return q.ask()
}

func (q *queue) FlashH2D(a *cuda.BlocksArgs, s cuda.Stream) error {
	q.next(callFlashH2D, s, 1).blocks = *a
	return q.ask()
}

func (q *queue) GPUScatter(a *cuda.BlocksArgs, s cuda.Stream) error {
	q.next(callGPUScatter, s, 1).blocks = *a
	return q.ask()
}

// MemcpyBlocks counts as one call a block.
func (q *queue) MemcpyBlocks(a *cuda.BlocksArgs, s cuda.Stream) error {
	q.next(callMemcpyBlocks, s, a.Count).blocks = *a
	return q.ask()
}

func (q *queue) Lookup(a *cuda.LookupArgs, s cuda.Stream) error {
	q.next(callLookup, s, 1).lookup = *a
	return q.ask()
}

func (q *queue) Table(a *cuda.TableArgs, s cuda.Stream) error {
	q.next(callTable, s, 1).table = *a
	return q.ask()
}

func (q *queue) Decode(a *cuda.DecodeArgs, s cuda.Stream) error {
	q.next(callDecode, s, 1).decode = *a
	return q.ask()
}

func (q *queue) PSA(a *cuda.PSAArgs, s cuda.Stream) error {
	q.next(callPSA, s, 1).psa = *a
	return q.ask()
}

func (q *queue) Prefill(a *cuda.PrefillArgs, s cuda.Stream) error {
	q.next(callPrefill, s, 1).prefill = *a
	return q.ask()
}

func (q *queue) Digest(a *cuda.DigestArgs, s cuda.Stream) error {
	q.next(callDigest, s, 1).digest = *a
	return q.ask()
}

func (q *queue) Select(a *cuda.SelectArgs, s cuda.Stream) error {
	q.next(callSelect, s, 1).sel = *a
	return q.ask()
}

func (q *queue) Linear(a *cuda.LinearArgs, s cuda.Stream) error {
	q.next(callLinear, s, 1).linear = *a
	return q.ask()
}

func (q *queue) Embed(a *cuda.EmbedArgs, s cuda.Stream) error {
	q.next(callEmbed, s, 1).embed = *a
	return q.ask()
}

func (q *queue) RMSNorm(a *cuda.RMSNormArgs, s cuda.Stream) error {
	q.next(callRMSNorm, s, 1).norm = *a
	return q.ask()
}

func (q *queue) Rope(a *cuda.RopeArgs, s cuda.Stream) error {
	q.next(callRope, s, 1).rope = *a
	return q.ask()
}

func (q *queue) KVWrite(a *cuda.RopeArgs, s cuda.Stream) error {
	q.next(callKVWrite, s, 1).rope = *a
	return q.ask()
}

func (q *queue) SiluMul(a *cuda.SiluMulArgs, s cuda.Stream) error {
	q.next(callSiluMul, s, 1).silu = *a
	return q.ask()
}

func (q *queue) Argmax(a *cuda.ArgmaxArgs, s cuda.Stream) error {
	q.next(callArgmax, s, 1).argmax = *a
	return q.ask()
}

// hand gives a job to the saver's thread once what it waits for is on its stream.
func (q *queue) hand(s *saver, j job) error {
	c := q.next(callHand, 0, 0)
	c.saver, c.job = s, j
	return q.ask()
}

// rounds is the library's pipeline of progressive attention, and what it leaves to load. It stops loading once it hears that every unit is done, which may
// be before or after it has started on the round that follows; the server takes what it named for that round to be in HBM, so what was left out is loaded
// here. For the same reason loads of units that are done are not left out (no owner).
type rounds struct {
	args    cuda.PSAPipelineArgs // without PSA and Loaded
	psa     cuda.PSAArgs
	before  []int64    // loads before each round, in pinned memory
	reached int        // rounds that attend to something
	late    cuda.Event // behind loads for other rounds, if there are any
	begun   int32
}

// Rounds has the thread run the pipeline, which waits for verdicts.
func (q *queue) Rounds(r *rounds, s cuda.Stream) error {
	q.next(callRounds, s, 0).rounds = *r
	return q.ask()
}

func (r *rounds) carryOut(q *queue, stream cuda.Stream) error {
	start := time.Now()
	defer func() { q.inRounds += time.Since(start) }()
	r.args.PSA, r.args.Loaded = &r.psa, &r.begun
	if err := q.Machine.PSAPipeline(&r.args, stream); err != nil {
		return err
	}
	begun := int(r.begun)
	if begun < r.reached {
		return fmt.Errorf("progressive attention ended after %d of %d rounds", begun, r.reached)
	}
	for from := 0; from < begun; from = turn(r.before, from, r.reached) {
		if from < r.reached {
			q.launched++
		}
		if r.before[from] < r.before[from+1] {
			q.launched++
		}
	}
	last := len(r.before) - 1
	if r.before[r.reached] == r.before[last] {
		return nil
	}
	if a := loadsOf(cuda.BlocksArgs{Src: r.args.Src, Dst: r.args.Dst, BlockBytes: r.args.BlockBytes}, r.before, begun, last); a.Count > 0 {
		if err := q.Machine.FlashH2D(&a, r.args.Loads); err != nil {
			return fmt.Errorf("loading %d blocks for rounds %d to %d: %w", a.Count, begun, last-1, err)
		}
		q.launched++
	}
	return q.Machine.EventRecord(r.late, r.args.Loads)
}
