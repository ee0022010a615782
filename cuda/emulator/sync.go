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
	defer m.enter()()
	s, err := m.stream("ss_stream_destroy", h)
	if err != nil {
		return err
	}
	if h == 0 {
		return failure("ss_stream_destroy", cuda.Failed, "the default stream stays")
	}
	err = m.drain(s)
	delete(m.streams, h)
	m.dropStream(s)
	return err
}

// StreamSync runs the stream's work and its dependencies.
func (m *Machine) StreamSync(h cuda.Stream) error {
	defer m.enter()()
	s, err := m.stream("ss_stream_sync", h)
	if err != nil {
		return err
	}
	return m.drain(s)
}

// StreamWait makes later work of the stream wait for the event's latest recording; without one it
// does nothing.
func (m *Machine) StreamWait(h cuda.Stream, e cuda.Event) error {
	defer m.enter()()
	s, err := m.stream("ss_stream_wait", h)
	if err != nil {
		return err
	}
	on, err := m.event("ss_stream_wait", e)
	if err != nil {
		return err
	}
	return m.wait(s, on.last)
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
	defer m.enter()()
	if _, err := m.event("ss_event_destroy", h); err != nil {
		return err
	}
	delete(m.events, h)
	return nil
}

// EventRecord puts the event at the end of the stream.
func (m *Machine) EventRecord(h cuda.Event, on cuda.Stream) error {
	defer m.enter()()
	e, err := m.event("ss_event_record", h)
	if err != nil {
		return err
	}
	s, err := m.stream("ss_event_record", on)
	if err != nil {
		return err
	}
	e.last, err = m.record(s)
	return err
}

// EventSync runs the work before the event.
func (m *Machine) EventSync(h cuda.Event) error {
	defer m.enter()()
	e, err := m.event("ss_event_sync", h)
	if err != nil {
		return err
	}
	if e.last == nil {
		return m.failed
	}
	return m.reach(e.last)
}

// EventMilliseconds returns the time between two events that have passed.
func (m *Machine) EventMilliseconds(from, to cuda.Event) (float64, error) {
	defer m.enter()()
	var last [2]*mark
	for i, h := range []cuda.Event{from, to} {
		e, err := m.event("ss_event_ms", h)
		if err != nil {
			return 0, err
		}
		if !e.timed {
			return 0, failure("ss_event_ms", cuda.Failed, "event %#x keeps no time", uintptr(h))
		}
		if last[i] = e.last; e.last == nil || !e.last.passed {
			return 0, failure("ss_event_ms", cuda.Failed, "event %#x has not passed", uintptr(h))
		}
	}
	return last[1].time.Sub(last[0].time).Seconds() * 1e3, m.failed
}
