package live

import "sparseserve/cuda"

// meter counts the calls that put work on a stream, a memcpy a block each by itself; those of PSAPipeline are counted by who
// knows its launches. One thread uses it.
type meter struct {
	Machine
	counters *Counters
}

func metered[A any](c *meter, do func(A, cuda.Stream) error, a A, s cuda.Stream) error {
	c.counters.Calls++
	return do(a, s)
}

func (c *meter) Memcpy(a *cuda.MemcpyArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Memcpy, a, s)
}
func (c *meter) Carry(a *cuda.MemcpyArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Carry, a, s)
}
func (c *meter) Memset(a *cuda.MemsetArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Memset, a, s)
}
func (c *meter) FlashH2D(a *cuda.BlocksArgs, s cuda.Stream) error {
	return metered(c, c.Machine.FlashH2D, a, s)
}
func (c *meter) GPUScatter(a *cuda.BlocksArgs, s cuda.Stream) error {
	return metered(c, c.Machine.GPUScatter, a, s)
}
func (c *meter) MemcpyBlocks(a *cuda.BlocksArgs, s cuda.Stream) error {
	c.counters.Calls += a.Count
	return c.Machine.MemcpyBlocks(a, s)
}
func (c *meter) MemcpyBatch(a *cuda.BlocksArgs, s cuda.Stream) error {
	return metered(c, c.Machine.MemcpyBatch, a, s)
}
func (c *meter) Lookup(a *cuda.LookupArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Lookup, a, s)
}
func (c *meter) Table(a *cuda.TableArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Table, a, s)
}
func (c *meter) Decode(a *cuda.DecodeArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Decode, a, s)
}
func (c *meter) PSA(a *cuda.PSAArgs, s cuda.Stream) error {
	return metered(c, c.Machine.PSA, a, s)
}
func (c *meter) Prefill(a *cuda.PrefillArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Prefill, a, s)
}
func (c *meter) Digest(a *cuda.DigestArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Digest, a, s)
}
func (c *meter) Select(a *cuda.SelectArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Select, a, s)
}
func (c *meter) Linear(a *cuda.LinearArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Linear, a, s)
}
func (c *meter) Embed(a *cuda.EmbedArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Embed, a, s)
}
func (c *meter) RMSNorm(a *cuda.RMSNormArgs, s cuda.Stream) error {
	return metered(c, c.Machine.RMSNorm, a, s)
}
func (c *meter) Rope(a *cuda.RopeArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Rope, a, s)
}
func (c *meter) KVWrite(a *cuda.RopeArgs, s cuda.Stream) error {
	return metered(c, c.Machine.KVWrite, a, s)
}
func (c *meter) SiluMul(a *cuda.SiluMulArgs, s cuda.Stream) error {
	return metered(c, c.Machine.SiluMul, a, s)
}
func (c *meter) Argmax(a *cuda.ArgmaxArgs, s cuda.Stream) error {
	return metered(c, c.Machine.Argmax, a, s)
}
