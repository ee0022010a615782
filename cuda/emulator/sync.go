package emulator

import "github.com/sparseserve/sparseserve/cuda"

// StreamCreate returns a stream; all have one priority.
func (m *Machine) StreamCreate(bool) (cuda.Stream, error) {
	defer m.enter()()
	m.handles++
	h := cuda.Stream(m.handles)
	m.streams[h] = m.newStream()
	return h, m.failed
}

// StreamDestroy ends a stream after its work.
func (m *Machine) StreamDestroy(h cuda.Stream) error {
	return m.call("ss_stream_destroy", func(a *access) error {
		s := m.stream(a, h)
		if h == 0 {
			return failure(a.call, cuda.Failed, "the default stream stays")
		}
		err := m.drain(s)
		delete(m.streams, h)
		m.dropStream(s)
		return err
	})
}

// StreamSync runs the stream's work and its dependencies.
func (m *Machine) StreamSync(h cuda.Stream) error {
	return m.call("ss_stream_sync", func(a *access) error { return m.drain(m.stream(a, h)) })
}

// StreamWait makes later work of the stream wait for the event's latest recording; without one it
// does nothing.
func (m *Machine) StreamWait(h cuda.Stream, e cuda.Event) error {
	return m.call("ss_stream_wait", func(a *access) error {
		return m.wait(m.stream(a, h), m.event(a, e).last)
	})
}

// DeviceSync runs all work.
func (m *Machine) DeviceSync() error {
	defer m.enter()()
	return m.drainAll()
}

// EventCreate returns an event, which keeps time if it is timed.
func (m *Machine) EventCreate(timed bool) (cuda.Event, error) {
	defer m.enter()()
	m.handles++
	h := cuda.Event(m.handles)
	m.events[h] = &event{timed: timed}
	return h, m.failed
}

// EventDestroy ends an event; existing waits for it continue.
func (m *Machine) EventDestroy(h cuda.Event) error {
	return m.call("ss_event_destroy", func(a *access) error {
		m.event(a, h)
		delete(m.events, h)
		return nil
	})
}

// EventRecord puts the event at the end of the stream.
func (m *Machine) EventRecord(h cuda.Event, on cuda.Stream) error {
	return m.call("ss_event_record", func(a *access) (err error) {
		e := m.event(a, h)
		e.last, err = m.record(m.stream(a, on))
		return err
	})
}

// EventSync runs the work before the event.
func (m *Machine) EventSync(h cuda.Event) error {
	return m.call("ss_event_sync", func(a *access) error {
		if last := m.event(a, h).last; last != nil {
			return m.reach(last)
		}
		return m.failed
	})
}

// EventMilliseconds returns the time between two events that have passed.
func (m *Machine) EventMilliseconds(from, to cuda.Event) (ms float64, err error) {
	err = m.call("ss_event_ms", func(a *access) error {
		var last [2]*mark
		for i, h := range []cuda.Event{from, to} {
			e := m.event(a, h)
			if !e.timed {
				return failure(a.call, cuda.Failed, "event %#x keeps no time", uintptr(h))
			}
			if last[i] = e.last; e.last == nil || !e.last.passed {
				return failure(a.call, cuda.Failed, "event %#x has not passed", uintptr(h))
			}
		}
		ms = last[1].time.Sub(last[0].time).Seconds() * 1e3
		return m.failed
	})
	return ms, err
}
