package config

import (
	"fmt"
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
func (p *Point) Machine() (*hw.Profile, error) {
	return hw.Load(p.GPU, p.System.Engine, p.Card)
}

// Shard returns each GPU's share of the point's model.
func (p *Point) Shard() (llm.Model, error) {
	m, err := llm.Load(p.Model)
	if err != nil {
		return m, err
	}
	return shardOf(m, &p.System)
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

// machineKey identifies everything that machine reads.
func (p *Point) machineKey() string {
	return fmt.Sprintf("gpu %s engine %s card %v", p.GPU, p.System.Engine, p.Card)
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

// keepCards records for which card a document's [card] figures were written: the card that the
// document, or one below it, names. Figures set by flags and axes apply to any card.
func (l *loader) keepCards(doc *document, flag bool) {
	for _, figure := range doc.under("card") {
		if !flag && l.origin("gpu") != builtInDefault {
			l.last("card." + figure.Key).card = l.cfg.GPU
		}
	}
}

// addCards adds the figures that change a card other than the one they were written for.
func (l *loader) addCards(e *effects) {
	for figure, value := range l.cfg.Card {
		key := "card." + figure
		if of := l.last(key).card; of != "" && of != l.cfg.GPU {
			e.cards[key] = (&KeyError{Where: l.origin(key), Key: key, Value: Show(value),
				Reason: fmt.Sprintf("stands beside gpu = %q and changes %s, which %s names; set it "+
					"for that card, or leave it out", of, l.cfg.GPU, l.origin("gpu"))}).Error()
		}
	}
}

// addAllCards adds the figures that apply to several cards of a sweep.
func (s *Sweep) addAllCards(e *effects, below *loader) {
	var gpus []string
	for _, v := range s.Variants {
		if !slices.Contains(gpus, v.Config.GPU) {
			gpus = append(gpus, v.Config.GPU)
		}
	}
	for figure, value := range below.cfg.Card {
		key := "card." + figure
		if len(gpus) < 2 || e.cards[key] != "" || slices.Contains(s.Axes, key) {
			continue
		}
		e.cards[key] = (&KeyError{Where: below.origin(key), Key: key, Value: Show(value),
			Reason: "changes each of " + strings.Join(gpus, ", ") + "; an axis with zip.gpu and zip." + key +
				" gives each its own"}).Error()
	}
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

// Bounds lists the bounds of the point's service level for its model on its card.
func (p *Point) Bounds() ([]Bound, error) {
	model, err := p.Shard()
	if err != nil {
		return nil, err
	}
	machine, err := p.Machine()
	if err != nil {
		return nil, err
	}
	iteration, err := hw.ReferenceIteration(machine, &model)
	return p.SLO.Bounds(iteration.Seconds()), err
}
