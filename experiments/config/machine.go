package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// Machine returns the hardware profile of a point: its card with changes, and its engine with the
// kernels on that card.
func (p *Point) Machine() (*hw.Profile, error) { return inputs{}.machine(p) }

// Hardware is what serves a point.
type Hardware struct {
	Shard llm.Model // the part of the model that one GPU holds
	GPU   *hw.Profile
	KV    int64 // bytes of HBM for KV, metadata and prefill buffers
}

// Hardware returns what serves a point.
func (p *Point) Hardware() (h Hardware, err error) {
	h.Shard, h.GPU, err = inputs{}.hardware(p)
	if err == nil {
		h.KV, err = KVBudget(h.GPU, &h.Shard, &p.System)
	}
	return h, err
}

// Bounds lists the bounds of the point's service level for its model on its card.
func (p *Point) Bounds() ([]Bound, error) {
	iteration, err := inputs{}.decodeStep(p)
	return p.SLO.Bounds(iteration.Seconds()), err
}

// shardOf returns the share of a model on each GPU of a system.
func shardOf(m llm.Model, s *sim.Spec) (llm.Model, error) {
	setKV(&m, s)
	m.Drafts = s.Speculation.Tokens > 0
	m.ExpertRanks = s.ExpertParallel
	return m.Shard(s.TensorParallel)
}

// setKV sets the bytes of a model's KV from a system's kv_dtype.
func setKV(m *llm.Model, s *sim.Spec) {
	switch s.KVDtype {
	case "fp8":
		m.KVBytesEach = 1
	case "bf16":
		m.KVBytesEach = 2
	}
}

// setCard sets one key of the [card] table.
func (l *loader) setCard(key string, value any) error {
	path := "card." + key
	var number float64
	v := reflect.ValueOf(&number).Elem()
	keys, units := hw.ChangeKeys()
	i := slices.Index(keys, key)
	if i < 0 {
		_, err := (hw.Changes{key: 1}).Check()
		return &KeyError{Key: path, Reason: err.Error()}
	}
	if err := decodeValue(v, path, units[i], value); err != nil {
		return err
	}
	if _, err := (hw.Changes{key: number}).Check(); err != nil {
		return &KeyError{Key: path, Value: Show(number), Reason: err.Error()}
	}
	if l.cfg.Card == nil {
		l.cfg.Card = hw.Changes{}
	}
	l.cfg.Card[key] = number
	return nil
}

// Changed lists the changed figures of a card, as in " (changed: hbm_size = 120)"; "" if there are
// none.
func Changed(card hw.Changes) string {
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(card)) {
		changes = append(changes, key+" = "+Show(card[key]))
	}
	if len(changes) == 0 {
		return ""
	}
	return " (changed: " + strings.Join(changes, ", ") + ")"
}

// cardTable writes the changes in the order of their keys.
func (e *encoder) cardTable(changes hw.Changes) {
	if len(changes) == 0 {
		return
	}
	e.printf("\n[card]\n")
	keys, _ := hw.ChangeKeys()
	for _, key := range keys {
		if v, ok := changes[key]; ok {
			e.line(key, v)
		}
	}
}
