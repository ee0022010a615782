package main

import (
	"fmt"

	"sparseserve/cuda"
)

// streams times a decode's linears on streams that are all held at once, each after the ones before it have worked, and on the first one again: how much
// it matters that a process gives the streams of one server to the next (streams.cu).
func streams(b *bench) error {
	const held, passes, tokens = 8, 25, 2
	s := layerShapes[0]
	var calls []*cuda.LinearArgs
	for _, shape := range [][2]int{{s.hidden, 3 * s.hidden}, {s.hidden, s.hidden}, {s.hidden, 2 * s.ffn}, {s.ffn, s.hidden}} {
		a := &cuda.LinearArgs{Tokens: tokens, In: int32(shape[0]), Out: int32(shape[1])}
		var err error
		if a.W, err = b.random(int64(shape[0]) * int64(shape[1])); err != nil {
			return err
		}
		if a.X, err = b.random(int64(tokens * shape[0])); err != nil {
			return err
		}
		if a.Y, err = b.zeros(int64(2 * tokens * shape[1])); err != nil {
			return err
		}
		calls = append(calls, a)
	}
	from, err := b.EventCreate()
	if err != nil {
		return err
	}
	to, err := b.EventCreate()
	if err != nil {
		return err
	}
	pass := func(on cuda.Stream) (timing, error) {
		var samples []float64
		for i := range passes {
			if err := b.EventRecord(from, on); err != nil {
				return timing{}, err
			}
			for range 32 { // layers
				for _, a := range calls {
					if err := b.Launch(a, on); err != nil {
						return timing{}, err
					}
				}
			}
			if err := b.EventRecord(to, on); err != nil {
				return timing{}, err
			}
			if err := b.EventSync(to); err != nil {
				return timing{}, err
			}
			ms, err := b.EventMilliseconds(from, to)
			if err != nil {
				return timing{}, err
			}
			if i > passes/3 { // the first ones warm up
				samples = append(samples, ms)
			}
		}
		return summary(samples), nil
	}
	var all []cuda.Stream
	first := 0.
	for i := range held + 1 {
		what := "the first again"
		if i < held {
			stream, err := b.StreamCreate(true)
			if err != nil {
				return err
			}
			all = append(all, stream)
			what = fmt.Sprintf("stream %d", i+1)
		}
		t, err := pass(all[i%held])
		if err != nil {
			return err
		}
		if i == 0 {
			first = t.median
		}
		row(fmt.Sprintf("linears of 32 layers, %s, %d tokens, %s", s.name, tokens, what), t, "%.3f of the first", t.median/first)
	}
	for _, stream := range all {
		if err := b.StreamDestroy(stream); err != nil {
			return err
		}
	}
	if err := b.EventDestroy(from); err != nil {
		return err
	}
	return b.EventDestroy(to)
}
