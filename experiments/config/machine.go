package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// Machine puts together what a point runs on: its card as changed, the kernels of
// its engine there, and the engine.
func (p *Point) Machine() (*hw.Profile, error) {
	return hw.Load(p.GPU, p.System.Engine, p.Card)
}

// Shard is what each GPU has of the point's model.
func (p *Point) Shard() (hw.Model, error) {
	m, err := hw.LoadModel(p.Model)
	if err != nil {
		return m, err
	}
	return shardOf(m, &p.System)
}

// shardOf is what each GPU of a system has of a model.
func shardOf(m hw.Model, s *sim.Spec) (hw.Model, error) {
	m.Drafts = s.SpeculateTokens > 0
	m.ExpertRanks = s.ExpertParallel
	return m.Shard(s.TensorParallel)
}

// machineKey stands for all that machine reads.
func (p *Point) machineKey() string {
	return fmt.Sprintf("gpu %s engine %s card %v", p.GPU, p.System.Engine, p.Card)
}

// setCard sets one key of the [card] table.
func (l *loader) setCard(key string, value any) error {
	path := "card." + key
	var number float64
	v := reflect.ValueOf(&number).Elem()
	unit := ""
	keys, units := hw.ChangeKeys()
	if i := slices.Index(keys, key); i >= 0 {
		unit = units[i]
	}
	if err := decodeValue(v, path, unit, value); err != nil {
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
