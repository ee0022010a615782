package emulator

import (
	"errors"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

func TestAccessesOutsideAreFaults(t *testing.T) {
	g := newFixture(t, Config{})
	a, b, h := g.device(100), g.device(64), g.host(64)
	set := func(p cuda.Ptr, n int64) error { return g.Launch(&cuda.MemsetArgs{Dst: p, Bytes: n}, 0) }
	g.must(set(a, 100))
	g.must(set(a+99, 1))
	g.must(set(h.Ptr(), 64))
	faults(t, "one byte too many", set(a, 101), "Dst", "1 bytes past the end of 100 bytes of device "+
		"memory")
	faults(t, "wholly past the end", set(a+100, 1), "Dst", "past the end")
	faults(t, "pinned memory's end", set(h.Ptr()+60, 5), "Dst", "1 bytes past the end of 64 bytes "+
		"of pinned memory")
	faults(t, "address 4096", set(4096, 1), "Dst", "no allocation")
	faults(t, "null", set(0, 1), "Dst", "no allocation")
	faults(t, "far away", set(1<<62, 1), "Dst", "the next below ends")
	g.must(g.DeviceFree(b))
	faults(t, "after it was freed", set(b, 64), "Dst", "was freed")
	for range 100 {
		if c := g.device(64); c == b {
			t.Fatal("a freed address was given out again")
		}
	}
	faults(t, "misaligned", g.Launch(&cuda.FillArgs{Dst: a + 1, Count: 2, Scale: 1}, 0), "Dst",
		"no multiple of 2")
	var f *Fault
	if err := set(a, 101); !errors.As(err, &f) || f.Call != "ss_memset" || f.Address != a ||
		f.Bytes != 101 {
		t.Errorf("the fault is %+v", f)
	}
	g.must(set(a, 100)) // a fault at once poisons nothing
}

// An index that leads far out of its array is a fault even where it meets another allocation.
func TestIndexesDoNotReachOtherAllocations(t *testing.T) {
	g := newFixture(t, Config{})
	regions := map[cuda.Ptr]bool{}
	for range 64 {
		regions[g.device(4096)] = true
	}
	for p := range regions {
		if !regions[p+4096] || !regions[p+8192] {
			continue // no neighbours: nothing to reach
		}
		for _, token := range []int32{-1, 1, 2} {
			// The middle of three is a table of one row.
			err := g.Launch(&cuda.EmbedArgs{Table: p + 4096, Token: upload(g, []int32{token}),
				Out: g.device(4096), Tokens: 1, Hidden: 2048}, 0)
			faults(t, "a token after its table", err, "Table", "memory")
		}
		return
	}
	t.Fatal("no three allocations are adjacent: the test proves nothing")
}

func TestNewMemoryIsNaN(t *testing.T) {
	g := newFixture(t, Config{})
	for _, h := range download[cuda.Half](g, g.device(64), 32) {
		if h != 0x7e7e || h.Float() == h.Float() {
			t.Fatalf("device memory holds %#x", h)
		}
	}
	for _, h := range cuda.Slice[cuda.Half](g.host(64)) {
		if h != 0x7e7e {
			t.Fatalf("pinned memory holds %#x", h)
		}
	}
}

func TestCPUDoesNotReachDeviceMemory(t *testing.T) {
	g := newFixture(t, Config{})
	saver, err := g.SaverCreate(1, 4096, 1)
	g.must(err)
	d, h := g.device(1024), g.host(1024)
	onDevice, toDevice, toHost := upload(g, []cuda.Ptr{h.Ptr()}), pinned(g, []cuda.Ptr{d}).Ptr(),
		pinned(g, []cuda.Ptr{h.Ptr()}).Ptr()
	faults(t, "addresses in device memory",
		g.Launch(&cuda.SaveArgs{Saver: saver, Src: d, Dst: onDevice, Count: 1, BlockBytes: 64}, 0), "Dst",
		"does not reach")
	faults(t, "blocks in device memory",
		g.Launch(&cuda.SaveArgs{Saver: saver, Src: d, Dst: toDevice, Count: 1, BlockBytes: 64}, 0),
		"Dst block", "does not reach")
	faults(t, "addresses of memcpys in device memory",
		g.Launch(&cuda.MemcpyBlocksArgs{Src: onDevice, Dst: toDevice, Count: 1, BlockBytes: 64}, 0),
		"Src", "does not reach")
	g.must(g.Launch(&cuda.SaveArgs{Saver: saver, Src: d, Dst: toHost, Count: 1, BlockBytes: 64}, 0))
	// a kernel reads both
	g.must(g.Launch(&cuda.FlashH2DArgs{Src: onDevice, Dst: toDevice, Count: 1, BlockBytes: 64}, 0))
}

func TestMemoryIsCounted(t *testing.T) {
	g := newFixture(t, Config{MemoryBytes: 1000})
	a, h := g.device(600), g.host(5000)
	if _, err := g.DeviceAlloc(401); !errors.Is(err, cuda.OutOfMemory) {
		t.Errorf("401 bytes of 400: %v", err)
	}
	if device, host := g.emulated.Held(); device != 600 || host != 5000 {
		t.Errorf("held: %d and %d bytes", device, host)
	}
	info, err := g.Device()
	g.must(err)
	if info.MemoryBytes != 1000 || info.MemoryBusyBytes != 600 {
		t.Errorf("device: %+v", info)
	}
	g.must(g.DeviceFree(a))
	g.must(g.HostFree(h))
	g.device(1000)
	if device, host := g.emulated.Held(); device != 1000 || host != 0 {
		t.Errorf("held: %d and %d bytes", device, host)
	}
}

func TestOnlyAllocationsAreFreed(t *testing.T) {
	g := newFixture(t, Config{})
	d, h := g.device(64), g.host(64)
	if err := g.DeviceFree(d + 16); !errors.Is(err, cuda.Failed) {
		t.Errorf("inside an allocation: %v", err)
	}
	if err := g.DeviceFree(h.Ptr()); !errors.Is(err, cuda.Failed) {
		t.Errorf("pinned memory as device memory: %v", err)
	}
	if err := g.HostFree(cuda.HostMemoryOf(make([]byte, 8))); !errors.Is(err, cuda.BadArgument) {
		t.Errorf("memory of the program: %v", err)
	}
	g.must(g.DeviceFree(d))
	if err := g.DeviceFree(d); !errors.Is(err, cuda.Failed) {
		t.Errorf("twice: %v", err)
	}
	g.must(g.DeviceFree(0))
	g.must(g.HostFree(cuda.HostMemory{}))
}

func TestBadArgumentsAreRefused(t *testing.T) {
	g := newFixture(t, Config{})
	saver, err := g.SaverCreate(1, 4096, 1)
	g.must(err)
	p := g.device(1 << 16)
	decode := func(change func(*cuda.DecodeArgs)) error {
		d := &cuda.DecodeArgs{Q: p, Pool: p, Table: p, Context: p, Out: p, Workspace: p, Batch: 1,
			HeadsQ: 1, HeadsKV: 1, HeadDim: 64, BlockTokens: 16}
		change(d)
		return g.Launch(d, 0)
	}
	for name, err := range map[string]error{
		"no arguments": g.Launch((*cuda.DecodeArgs)(nil), 0),
		"odd fill":     g.Launch(&cuda.FillArgs{Dst: p, Count: 3}, 0),
		"block of 8 bytes": g.Launch(&cuda.FlashH2DArgs{Src: p, Dst: p, Count: 1,
			BlockBytes: 8}, 0),
		"owner without skip": g.Launch(&cuda.FlashH2DArgs{Src: p, Dst: p, Owner: p, Count: 1,
			BlockBytes: 64}, 0),
		"no saver": g.Launch(&cuda.SaveArgs{Src: p, Dst: p, Count: 1, BlockBytes: 64}, 0),
		"save of 32-byte blocks": g.Launch(&cuda.SaveArgs{Saver: saver, Src: p, Dst: p, Count: 1,
			BlockBytes: 32}, 0),
		"block above the chunk": g.Launch(&cuda.SaveArgs{Saver: saver, Src: p, Dst: p, Count: 1,
			BlockBytes: 8192}, 0),
		"block off 32 bytes": g.Launch(&cuda.SaveArgs{Saver: saver, Src: p,
			Dst: pinned(g, []cuda.Ptr{g.host(128).Ptr() + 16}).Ptr(), Count: 1, BlockBytes: 64}, 0),
		"group of 16":        decode(func(d *cuda.DecodeArgs) { d.HeadsQ = 16 }),
		"head of 96":         decode(func(d *cuda.DecodeArgs) { d.HeadDim = 96 }),
		"block of 8 tokens":  decode(func(d *cuda.DecodeArgs) { d.BlockTokens = 8 }),
		"no KV heads":        decode(func(d *cuda.DecodeArgs) { d.HeadsKV = 0 }),
		"list without count": decode(func(d *cuda.DecodeArgs) { d.List = p }),
		"workspace of no batch": func() error {
			_, err := g.Workspace(&cuda.DecodeArgs{})
			return err
		}(),
		"PSA above 1": g.Launch(&cuda.PSAArgs{Q: p, Pool: p, Table: p, Context: p, Out: p,
			Order: p, Count: p, Used: p, Done: p, State: p, Batch: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 64,
			BlockTokens: 16, Micro: 1, Steps: 1, Epsilon: 1.5}, 0),
		"prefill stride of 12": g.Launch(&cuda.PrefillArgs{Q: p, K: p, V: p, Out: p, QTokens: 1,
			HeadsQ: 1, HeadsKV: 1, HeadDim: 128, KTokenStride: 12}, 0),
		"k above the maximum": g.Launch(&cuda.TopKArgs{Scores: p, Blocks: p, List: p, Count: p,
			Units: 1, K: cuda.TopKMax + 1, ListStride: cuda.TopKMax + 1}, 0),
		"k above the list": g.Launch(&cuda.TopKArgs{Scores: p, Blocks: p, List: p, Count: p,
			Units: 1, K: 5, ListStride: 4}, 0),
		"hidden of 12": g.Launch(&cuda.EmbedArgs{Table: p, Token: p, Out: p, Tokens: 1,
			Hidden: 12}, 0),
		"rows with a residual": g.Launch(&cuda.RMSNormArgs{X: p, Weight: p, Out: p, Residual: p,
			Row: p, Rows: 1, Hidden: 8}, 0),
		"pool without a table": g.Launch(&cuda.RopeArgs{QKV: p, Position: p, InvFreq: p, Pool: p,
			Tokens: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 64}, 0),
		"slots without a list": decode(func(d *cuda.DecodeArgs) { d.Slot = p }),
		"pages of 272 tokens": g.Launch(&cuda.PrefillArgs{Q: p, Out: p, Pool: p, Table: p,
			BlockTokens: 272, QTokens: 1, HeadsQ: 1, HeadsKV: 1, HeadDim: 64}, 0),
		"ffn of 4": g.Launch(&cuda.SiluMulArgs{X: p, Out: p, Tokens: 1, FFN: 4}, 0),
		"stride below vocabulary": g.Launch(&cuda.ArgmaxArgs{Logits: p, Out: p, Rows: 1, Vocab: 9,
			Stride: 8}, 0),
		"linear of no values": g.Launch(&cuda.LinearArgs{X: p, W: p, Y: p, Tokens: 1, Out: 1}, 0),
		"digest of head 96": g.Launch(&cuda.DigestArgs{Pool: p, Slot: p, Dst: p, Meta: p, Count: 1,
			HeadDim: 96, BlockTokens: 16}, 0),
		"select of other units": g.Launch(&cuda.SelectArgs{
			Scores: cuda.ScoresArgs{Q: p, Meta: p, First: p, Count: p, Scores: p, Batch: 1, HeadsQ: 1,
				HeadsKV: 1, HeadDim: 64}, TopK: cuda.TopKArgs{Blocks: p, List: p, Count: p, Units: 2},
			Arrived: p}, 0),
		"no device bytes":          func() error { _, err := g.DeviceAlloc(0); return err }(),
		"host pages of a 3rd kind": func() error { _, err := g.HostAlloc(8, 2); return err }(),
		"saver of no threads":      func() error { _, err := g.SaverCreate(0, 4096, 1); return err }(),
	} {
		var e *cuda.Error
		if !errors.Is(err, cuda.BadArgument) || !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"unknown stream": g.Launch(&cuda.EmptyArgs{}, 99), "unknown event": g.EventSync(99),
		"copy of -1 bytes": g.Launch(&cuda.MemcpyArgs{Bytes: -1}, 0),
		"no addresses":     g.Launch(&cuda.GPUScatterArgs{Count: 1, BlockBytes: 64}, 0),
		"no workspace":     decode(func(d *cuda.DecodeArgs) { d.MaxBlocks, d.Workspace = 100, 0 }),
		"prefill without data": g.Launch(&cuda.PrefillArgs{QTokens: 1, HeadsQ: 1, HeadsKV: 1,
			HeadDim: 128}, 0),
		"end of the default stream": g.StreamDestroy(0),
		"time of an event never recorded": func() error {
			e := g.event()
			_,
				err := g.EventMilliseconds(e, e)
			return err
		}(),
	} {
		if !errors.Is(err, cuda.Failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
