package emulator

import "github.com/sparseserve/sparseserve/cuda"

// SaverCreate returns a saver of FlashD2H; the emulator ignores its threads and its staging.
func (m *Machine) SaverCreate(threads int, chunkBytes int64, stages int) (cuda.Saver, error) {
	defer m.enter()()
	if threads < 1 || threads > 1024 || chunkBytes < 4096 || chunkBytes%64 != 0 || stages < 1 ||
		stages > 64 {
		return 0, failure("ss_saver_create", cuda.BadArgument, "%d threads, chunks of %d bytes, "+
			"%d stages", threads, chunkBytes, stages)
	}
	m.handles++
	m.savers[cuda.Saver(m.handles)] = chunkBytes
	return cuda.Saver(m.handles), m.failed
}

// SaverDestroy ends the saver.
func (m *Machine) SaverDestroy(h cuda.Saver) error {
	defer m.enter()()
	if h != 0 && m.savers[h] == 0 {
		return failure("ss_saver_destroy", cuda.BadArgument, "%#x is no saver", uintptr(h))
	}
	delete(m.savers, h)
	return m.failed
}

// save copies the tensor to its blocks: from device memory by the copy engine, into host memory by
// the CPU. It returns when every block is written.
func (m *Machine) save(gpu *access, a *cuda.SaveArgs) error {
	if a.After != 0 {
		if last := m.event(gpu, a.After).last; last != nil {
			if err := m.reach(last); err != nil {
				return err
			}
		}
	}
	if m.failed != nil {
		return m.failed
	}
	host := gpu.onHost()
	host.need(m.savers[a.Saver] > 0, "a saver")
	host.need(a.BlockBytes > 0 && a.BlockBytes%64 == 0 && a.BlockBytes <= m.savers[a.Saver],
		"blocks of a multiple of 64 bytes, at most the saver's chunk")
	src := gpu.bytes("Src", a.Src, 0, a.Count*a.BlockBytes)
	for i, p := range view[cuda.Ptr](host, "Dst", a.Dst, 0, int(a.Count)) {
		host.need(p%32 == 0, "destinations that are multiples of 32")
		copy(host.bytes("Dst block", p, 0, a.BlockBytes), src[int64(i)*a.BlockBytes:])
	}
	return nil
}
