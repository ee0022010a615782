package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/traces"
)

// inputs caches files that configurations name. The variants of a sweep share it, so each file is
// read once.
type inputs map[string]any

// read is the result of reading an input.
type read[T any] struct {
	value T
	err   error
}

// once loads the input for a key at its first use.
func once[T any](in inputs, key string, load func() (T, error)) (T, error) {
	r, ok := in[key].(read[T])
	if !ok {
		r.value, r.err = load()
		in[key] = r
	}
	return r.value, r.err
}

func (in inputs) model(name string) (llm.Model, error) {
	return once(in, "model "+name, func() (llm.Model, error) { return llm.Load(name) })
}

// card returns an unchanged card.
func (in inputs) card(name string) (*hw.Card, error) {
	return once(in, "card "+name, func() (*hw.Card, error) { return hw.LoadCard(name) })
}

func (in inputs) engine(name string) (*hw.Engine, error) {
	return once(in, "engine "+name, func() (*hw.Engine, error) { return hw.LoadEngine(name) })
}

// machineKey identifies everything that machine reads.
func (p *Point) machineKey() string {
	return fmt.Sprintf("gpu %s engine %s card %v", p.GPU, p.System.Engine, p.Card)
}

// machine returns a point's changed card with the kernels of its engine on it.
func (in inputs) machine(p *Point) (*hw.Profile, error) {
	return once(in, p.machineKey(),
		func() (*hw.Profile, error) { return hw.Load(p.GPU, p.System.Engine, p.Card) })
}

// hardware returns the share of a point's model on each GPU, and machine.
func (in inputs) hardware(p *Point) (shard llm.Model, gpu *hw.Profile, err error) {
	if shard, err = in.model(p.Model); err == nil {
		shard, err = shardOf(shard, &p.System)
	}
	if err == nil {
		gpu, err = in.machine(p)
	}
	return shard, gpu, err
}

// trace opens a trace once, so that a missing or malformed file is found before anything runs.
func (in inputs) trace(w traces.Spec, seed uint64) error {
	w.Rate = min(w.Rate, 1) // which rate matters to no file
	_, err := once(in, fmt.Sprintf("trace %+v", w), func() (struct{}, error) {
		stream, err := traces.Open(w, seed)
		if err == nil {
			err = stream.Close()
		}
		return struct{}{}, err
	})
	return err
}
