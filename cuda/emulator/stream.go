package emulator

import (
	"slices"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// stream is work in call order. Without Config.Late its queue is empty between calls.
type stream struct {
	queue []item
}

// item is an operation, a mark to set, or a mark to wait for.
type item struct {
	run   func() error
	set   *mark
	await *mark
}

// mark is one recording of an event. A waiter waits for this recording, even if the event is
// recorded again.
type mark struct {
	on     *stream
	passed bool
	time   time.Time
}

// event refers to its latest recording; nil until the first.
type event struct {
	timed bool
	last  *mark
}

func (m *Machine) newStream() *stream {
	s := &stream{}
	m.order = append(m.order, s)
	return s
}

func (m *Machine) dropStream(s *stream) {
	m.order = slices.DeleteFunc(m.order, func(other *stream) bool { return other == s })
}

// push appends an item to a stream and runs all due items.
func (m *Machine) push(s *stream, it item) error {
	if m.failed != nil {
		return m.failed
	}
	s.queue = append(s.queue, it)
	if m.config.Late {
		return m.runAhead()
	}
	for len(s.queue) > 0 {
		if err := m.step(s); err != nil {
			return err
		}
	}
	return nil
}

// runAhead sometimes runs work of a random stream.
func (m *Machine) runAhead() error {
	if m.random == nil || m.random.IntN(3) > 0 {
		return nil
	}
	s := m.order[m.random.IntN(len(m.order))]
	for n := m.random.IntN(6); n > 0 && len(s.queue) > 0; n-- {
		if err := m.step(s); err != nil {
			return m.late(err)
		}
	}
	return nil
}

// step runs the first item of a stream after its dependencies.
func (m *Machine) step(s *stream) error {
	it := s.queue[0]
	if it.await != nil {
		if err := m.reach(it.await); err != nil {
			return err
		}
	}
	if len(s.queue) == 0 { // a failure has emptied it
		return m.failed
	}
	s.queue = s.queue[1:]
	switch {
	case it.run != nil:
		return it.run()
	case it.set != nil:
		it.set.passed, it.set.time = true, m.config.Clock()
	}
	return nil
}

// reach runs a mark's stream up to the mark.
func (m *Machine) reach(k *mark) error {
	for !k.passed {
		if m.failed != nil {
			return m.failed
		}
		if err := m.late(m.step(k.on)); err != nil {
			return err
		}
	}
	return m.failed
}

// drain runs all of a stream.
func (m *Machine) drain(s *stream) error {
	for m.failed == nil && len(s.queue) > 0 {
		m.late(m.step(s))
	}
	return m.failed
}

// drainAll runs all streams.
func (m *Machine) drainAll() error {
	for _, s := range m.order {
		if err := m.drain(s); err != nil {
			return err
		}
	}
	return m.failed
}

// late keeps the error of an operation whose call has already returned. Nothing runs after it.
func (m *Machine) late(err error) error {
	if err != nil && m.failed == nil {
		m.failed = err
		for _, s := range m.order {
			s.queue = nil
		}
	}
	return err
}

// record puts a mark at the end of a stream.
func (m *Machine) record(s *stream) (*mark, error) {
	k := &mark{on: s}
	return k, m.push(s, item{set: k})
}

// wait makes later work of a stream wait for a mark.
func (m *Machine) wait(s *stream, k *mark) error {
	if k == nil {
		return m.failed
	}
	return m.push(s, item{await: k})
}

func (m *Machine) stream(a *access, h cuda.Stream) *stream {
	return held(a, m.streams, h, "stream")
}

func (m *Machine) event(a *access, h cuda.Event) *event { return held(a, m.events, h, "event") }

// held returns what a handle names; without it the call fails.
func held[H ~uintptr, T any](a *access, all map[H]*T, h H, what string) *T {
	if t := all[h]; t != nil {
		return t
	}
	panic(failure(a.call, cuda.Failed, "%#x is no %s", uintptr(h), what))
}
