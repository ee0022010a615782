package emulator

import (
	"fmt"

	"sparseserve/cuda"
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

// checks collects what a call needs of its arguments; the first need that is not met is its error.
type checks struct {
	call string
	err  error
}

func (c *checks) need(ok bool, what string) {
	if !ok && c.err == nil {
		c.err = failure(c.call, cuda.BadArgument, "argument needs %s", what)
	}
}

// given needs every address.
func (c *checks) given(what string, addresses ...cuda.Ptr) {
	for _, p := range addresses {
		c.need(p != 0, what)
	}
}

// heads checks the shape that all attention takes.
func (c *checks) heads(q, kv, dim int32) {
	c.need(kv > 0 && q > 0 && q%max(kv, 1) == 0, "KV heads that divide the query heads")
	c.need(dim == 64 || dim == 128, "64 or 128 values a head")
}

// paged checks the shape that paged decode takes.
func (c *checks) paged(q, kv, dim, blockTokens int32) {
	c.heads(q, kv, dim)
	c.need(q <= 8*max(kv, 0), "at most 8 query heads a KV head")
	c.need(blockTokens > 0 && blockTokens%16 == 0 && blockTokens <= 1024, "blocks of a multiple of 16 tokens, at most 1024")
}

// operation is one call of the library: what it asks of its arguments, and what it does once it runs.
type operation[A any] struct {
	call  string
	check func(*checks, *A)
	run   func(*access, *A)
}

// launch checks the arguments and puts the operation on the stream. Arguments are read now, memory when it runs.
func launch[A any](m *Machine, op operation[A], args *A, on cuda.Stream) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	s, err := m.stream(op.call, on)
	if err != nil {
		return err
	}
	return enqueue(m, op, args, s)
}

func enqueue[A any](m *Machine, op operation[A], args *A, s *stream) error {
	c := checks{call: op.call}
	if c.need(args != nil, "arguments"); c.err == nil {
		op.check(&c, args)
	}
	if c.err != nil {
		return c.err
	}
	captured := *args
	return m.push(s, item{run: func() error {
		return m.guard(op.call, func(a *access) error {
			op.run(a, &captured)
			return nil
		})
	}})
}
