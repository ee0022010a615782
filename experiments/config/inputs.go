package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces"
)

// inputs reads what configurations name. The variants of a sweep share it, so that each file is
// read once.
type inputs struct {
	models   map[string]read[hw.Model]
	cards    map[string]read[*hw.Card]
	engines  map[string]read[*hw.Engine]
	machines map[string]read[*hw.Profile]
	traces   map[string]error
	steps    map[string]read[des.Time] // of decode, that service levels are factors of
}

// read is what came of reading an input.
type read[T any] struct {
	value T
	err   error
}

func newInputs() *inputs {
	return &inputs{map[string]read[hw.Model]{}, map[string]read[*hw.Card]{},
		map[string]read[*hw.Engine]{}, map[string]read[*hw.Profile]{}, map[string]error{},
		map[string]read[des.Time]{}}
}

func once[T any](known map[string]read[T], key string, load func() (T, error)) (T, error) {
	r, ok := known[key]
	if !ok {
		r.value, r.err = load()
		known[key] = r
	}
	return r.value, r.err
}

func (in *inputs) model(name string) (hw.Model, error) {
	return once(in.models, name, func() (hw.Model, error) { return hw.LoadModel(name) })
}

// card returns a card without changes.
func (in *inputs) card(name string) (*hw.Card, error) {
	return once(in.cards, name, func() (*hw.Card, error) { return hw.LoadCard(name) })
}

func (in *inputs) engine(name string) (*hw.Engine, error) {
	return once(in.engines, name, func() (*hw.Engine, error) { return hw.LoadEngine(name) })
}

// machine returns a card as changed, with the kernels of an engine there.
func (in *inputs) machine(gpu, engine string, card hw.Changes) (*hw.Profile, error) {
	return once(in.machines, fmt.Sprintf("%s\n%s\n%v", gpu, engine, card),
		func() (*hw.Profile, error) {
			c, err := hw.LoadCard(gpu)
			if err != nil {
				return nil, &gpuError{err}
			}
			if key, err := c.CheckChanges(card); err != nil {
				return nil, &KeyError{Key: "card." + key, Value: Show(card[key]), Reason: err.Error()}
			}
			return hw.Load(gpu, engine, card)
		})
}

// gpuError is the error of a card that cannot be read at all.
type gpuError struct{ err error }

func (e *gpuError) Error() string { return e.err.Error() }

// trace opens a trace once, so that a file that is missing or wrong at its beginning is found
// before anything runs.
func (in *inputs) trace(w traces.Spec, seed uint64) error {
	w.Rate = min(w.Rate, 1) // which rate matters to no file
	key := fmt.Sprintf("%+v", w)
	err, ok := in.traces[key]
	if !ok {
		var stream *traces.Stream
		if stream, err = traces.Open(w, seed); err == nil {
			err = stream.Close()
		}
		in.traces[key] = err
	}
	return err
}
