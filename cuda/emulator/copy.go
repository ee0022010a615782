package emulator

import "github.com/sparseserve/sparseserve/cuda"

func memcpy(m *access, a *cuda.MemcpyArgs) {
	copy(m.bytes("Dst", a.Dst, 0, a.Bytes), m.bytes("Src", a.Src, 0, a.Bytes))
}

func memset(m *access, a *cuda.MemsetArgs) {
	to := m.bytes("Dst", a.Dst, 0, a.Bytes)
	for i := range to {
		to[i] = byte(a.Value)
	}
}

func fill(m *access, a *cuda.FillArgs) {
	m.need(a.Count%2 == 0, "an even count")
	cuda.Fill(view[cuda.Half](m, "Dst", a.Dst, 0, int(a.Count)), a.Seed, a.Scale)
}

func checkBlocks(m *access, a *cuda.BlocksArgs) {
	m.need(a.BlockBytes > 0 && a.BlockBytes%16 == 0 && a.BlockBytes <= 1<<30,
		"blocks of a multiple of 16 bytes, at most 1 GiB")
	m.need((a.Owner == 0) == (a.Skip == 0), "both owner and skip, or none")
}

// copyBlocks is the kernel form: it reads addresses, owners and skips when it runs.
func copyBlocks(m *access, a *cuda.BlocksArgs) {
	checkBlocks(m, a)
	n := int(a.Count)
	if a.Counted != 0 {
		n = min(n, int(*at[int64](m, "Counted", a.Counted, 0)))
	}
	src, dst := view[cuda.Ptr](m, "Src", a.Src, 0, n), view[cuda.Ptr](m, "Dst", a.Dst, 0, n)
	for i := range src {
		if a.Skip != 0 && *at[int32](m, "Skip", a.Skip, int(*at[int32](m, "Owner", a.Owner,
			i))) != 0 {
			continue
		}
		m.aligned("Src block", src[i], 16)
		m.aligned("Dst block", dst[i], 16)
		copy(m.bytes("Dst block", dst[i], 0, a.BlockBytes), m.bytes("Src block", src[i], 0,
			a.BlockBytes))
	}
}

// memcpyBlocks is the memcpy form: the CPU reads the addresses now and queues one copy per block.
func (m *Machine) memcpyBlocks(host *access, a *cuda.BlocksArgs, s *stream) error {
	checkBlocks(host, a)
	src := view[cuda.Ptr](host, "Src", a.Src, 0, int(a.Count))
	dst := view[cuda.Ptr](host, "Dst", a.Dst, 0, int(a.Count))
	for i := range src {
		one := cuda.MemcpyArgs{Dst: dst[i], Src: src[i], Bytes: a.BlockBytes}
		if err := m.enqueue(host.call, kernelOf(&one), s); err != nil {
			return err
		}
	}
	return nil
}
