package emulator

import "github.com/sparseserve/sparseserve/cuda"

// saver is FlashD2H: a stream that only SaveWait waits for.
type saver struct {
	*stream
	chunkBytes int64
	// Set from SaveStart to SaveWait: a program must not rely on a save finishing without a wait.
	busy bool
}

// SaverCreate returns a saver; the emulator ignores its threads and its staging.
func (m *Machine) SaverCreate(threads int, chunkBytes int64, stages int) (cuda.Saver, error) {
	defer m.enter()()
	if threads < 1 || threads > 1024 || chunkBytes < 4096 || chunkBytes%64 != 0 || stages < 1 ||
		stages > 64 {
		return 0, failure("ss_saver_create", cuda.BadArgument, "%d threads, chunks of %d bytes, "+
			"%d stages", threads, chunkBytes, stages)
	}
	m.handles++
	h := cuda.Saver(m.handles)
	s := &saver{stream: m.newStream(), chunkBytes: chunkBytes}
	s.saves = true
	m.savers[h] = s
	return h, m.failed
}

// SaverDestroy waits for the running save and ends the saver.
func (m *Machine) SaverDestroy(h cuda.Saver) error {
	defer m.enter()()
	s := m.savers[h]
	if h == 0 {
		return nil
	} else if s == nil {
		return failure("ss_saver_destroy", cuda.BadArgument, "%#x is no saver", uintptr(h))
	}
	err := m.drain(s.stream)
	delete(m.savers, h)
	m.dropStream(s.stream)
	return err
}

// SaveStart starts a save. Dst is read when the save runs, as by the threads of a GPU's saver.
func (m *Machine) SaveStart(a *cuda.SaveArgs) error {
	defer m.enter()()
	return m.saveStart("ss_save_start", a)
}

// SaveWait blocks until the running save has written every block.
func (m *Machine) SaveWait(h cuda.Saver) error {
	defer m.enter()()
	return m.saveWait("ss_save_wait", h)
}

func (m *Machine) saveStart(call string, a *cuda.SaveArgs) error {
	s := m.savers[a.Saver]
	err := m.guard(call, func(host *access) error {
		host.need(s != nil, "a saver")
		host.need(a.Count >= 0, "count >= 0")
		host.need(a.BlockBytes > 0 && a.BlockBytes%64 == 0 && a.BlockBytes <= s.chunkBytes,
			"blocks of a multiple of 64 bytes, at most the saver's chunk")
		for _, p := range view[cuda.Ptr](host.onHost(), "Dst", a.Dst, 0, int(a.Count)) {
			host.need(p != 0 && p%32 == 0, "destinations that are multiples of 32")
		}
		return nil
	})
	if err != nil || a.Count == 0 {
		return err
	}
	if s.busy {
		return failure(call, cuda.BadArgument, "a save is still running")
	}
	var after *mark
	if a.After != 0 {
		e, err := m.event(call, a.After)
		if err != nil {
			return err
		}
		after = e.last
	}
	if err := m.wait(s.stream, after); err != nil {
		return err
	}
	err = m.enqueue(call, op(save).bind(a), s.stream)
	s.busy = err == nil
	return err
}

func (m *Machine) saveWait(call string, h cuda.Saver) error {
	s := m.savers[h]
	if s == nil {
		return failure(call, cuda.BadArgument, "argument needs a saver")
	}
	s.busy = false
	return m.drain(s.stream)
}

// save copies the tensor to its blocks: from device memory by the copy engine, into host memory by
// the CPU.
func save(m *access, a *cuda.SaveArgs) {
	host := m.onHost()
	src := m.bytes("Src", a.Src, 0, a.Count*a.BlockBytes)
	for i, p := range view[cuda.Ptr](host, "Dst", a.Dst, 0, int(a.Count)) {
		copy(host.bytes("Dst block", p, 0, a.BlockBytes), src[int64(i)*a.BlockBytes:])
	}
}
