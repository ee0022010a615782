package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/cost"
)

// finish checks the whole configuration and returns its runs: by system, and by the values of the
// listed keys.
func (l *loader) finish() ([]Point, error) {
	l.implied()
	if err := l.neutral(); err != nil {
		return nil, err
	}
	if err := l.contradicted(); err != nil {
		return nil, l.place(err)
	}
	if !l.cfg.Workload.HasRate() {
		l.lists["workload.rate"] = reflect.ValueOf([]float64{0})
	}
	runs, err := l.expand()
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if err := runs[i].Workload.Validate(); err != nil {
			return nil, l.placeText(err)
		}
	}
	for i := range runs {
		if err := checkFleet(&runs[i].Fleet); err != nil {
			return nil, l.place(err)
		}
	}
	l.ownBounds()
	if err := cmp.Or(checkTable(&l.cfg.Scores, "scores"), checkTable(&l.cfg.SLO, "slo"),
		checkTable(&l.cfg.Metrics, "metrics"), refusal(cutoffRules, &l.cfg.Point, nil)); err != nil {
		return nil, l.place(err)
	}
	systems, err := l.systems()
	if err != nil {
		return nil, err
	}
	systems, err = l.fitting(systems)
	if err != nil {
		return nil, err
	}
	if err := l.inputs.trace(runs[0].Workload, runs[0].Seed); err != nil {
		return nil, l.placeText(err)
	}
	var all []Point
	for _, own := range systems {
		var of []Point
		for _, p := range runs {
			p.System, p.SLO = own.cfg.System, l.cfg.SLO
			p.Name = PointName(&p)
			of = append(of, p)
		}
		own.find(l, of)
		l.stepsGiven = l.stepsGiven || own.chosen("system.max_tokens") ||
			own.chosen("prefill.chunk_tokens")
		all = append(all, of...)
	}
	return all, nil
}

// expand returns the configuration at each value of the listed keys, without systems.
func (l *loader) expand() ([]Point, error) {
	runs := []Point{l.cfg.Point}
	n := l.variants * float64(len(l.systemNames()))
	for _, key := range listed {
		if err := checkList(key, l.lists[key]); err != nil {
			return nil, l.place(err)
		}
		n *= float64(l.lists[key].Len())
	}
	if err := checkSize("axis", n); err != nil {
		return nil, err
	}
	for _, key := range listed {
		var more []Point
		for _, p := range runs {
			for i := range l.lists[key].Len() {
				v, _ := p.Field(key)
				v.Set(l.lists[key].Index(i))
				more = append(more, p)
			}
		}
		runs = more
	}
	for i := range runs {
		w := runs[i].Workload
		if r := w.Rate; w.HasRate() && (!(r > 0) || math.IsInf(r, 0)) {
			return nil, l.keyError("workload.rate", Show(r), "must be above 0, in requests/s")
		} else if !w.HasRate() {
			w.Rate = l.cfg.Workload.Rate // which is not used
		}
		if err := checkTable(&w, "workload"); err != nil {
			return nil, l.place(err)
		}
	}
	return runs, nil
}

// checkList refuses empty lists and duplicate values.
func checkList(key string, list reflect.Value) error {
	if list.Len() == 0 {
		return &KeyError{Key: key, Value: "[]", Reason: "no value to run with"}
	}
	seen := map[any]bool{}
	for i := range list.Len() {
		v := list.Index(i).Interface()
		if seen[v] {
			return &KeyError{Key: key, Value: Show(v), Reason: "listed twice"}
		}
		seen[v] = true
	}
	return nil
}

// fitting returns the systems whose GPUs have room for the model. Without room for one, only a plan
// goes on.
func (l *loader) fitting(systems []*loader) (fit []*loader, err error) {
	for _, own := range systems {
		switch unfit, err := own.checkHardware(); {
		case err != nil:
			return nil, err
		case unfit != "":
			l.unfit = append(l.unfit, Unfit{System: own.cfg.System.Name, Reason: unfit})
		default:
			fit = append(fit, own)
		}
	}
	return fit, nil
}

// checkHardware loads the model and the card, and checks that the model fits the card under the
// system; for a plan, unfit is the reason why it does not.
func (l *loader) checkHardware() (unfit string, err error) {
	s := &l.cfg.System
	model, err := l.inputs.model(l.cfg.Model)
	if err != nil {
		return "", l.placeError("model", err)
	}
	card, err := l.inputs.card(l.cfg.GPU)
	if err != nil {
		return "", l.placeError("gpu", err)
	}
	if figure, err := card.CheckChanges(l.cfg.Card); err != nil {
		return "", l.cardError(figure, err)
	}
	machine, err := l.inputs.machine(&l.cfg.Point)
	switch {
	case err != nil && len(l.cfg.Card) > 0: // unchanged cards have kernels of every engine
		return "", l.cardError(slices.Min(slices.Collect(maps.Keys(l.cfg.Card))), err)
	case err != nil:
		return "", l.keyError("system.engine", quote(s.Engine), err.Error())
	}
	setKV(&model, s)
	if err := refusal(modelRules, &l.cfg.Point, &model); err != nil {
		return "", l.place(err)
	}
	shard, err := shardOf(model, s)
	if err = cmp.Or(err, cost.CheckParallel(machine, s.TensorParallel)); err != nil {
		return "", l.keyError("system.tensor_parallel", Show(s.TensorParallel), err.Error())
	}
	var key *KeyError
	_, err = KVBudget(machine, &shard, s)
	if err != nil && !errors.As(err, &key) {
		err = fmt.Errorf("%w; %s", err, WouldFit(l.cfg.Point, 1))
	}
	switch {
	case err != nil && l.buys:
		return err.Error(), nil
	case key != nil:
		return "", l.place(key)
	case err != nil:
		for _, figure := range []string{"hbm_size", "runtime"} {
			if _, changed := l.cfg.Card[figure]; changed {
				return "", l.cardError(figure, err)
			}
		}
		return "", l.placeError("model", err)
	}
	if s.PrefixTiers() {
		g := shard.Geometry(s.BlockTokens)
		if _, err := PrefixOptions(s, g.TokenBytes()); errors.As(err, &key) {
			return "", l.place(key)
		}
	}
	return "", nil
}

// keyError returns an error about a key, at the place that last set it.
func (l *loader) keyError(key, value, reason string) error {
	return l.place(&KeyError{Key: key, Value: value, Reason: reason})
}

// place fills in the place that last set the key of a KeyError, and the key as it stands there.
func (l *loader) place(err error) error {
	var key *KeyError
	if errors.As(err, &key) && key.Where == "" {
		key.Where = l.originOf(key)
		if g := l.last(key.Key); g.where == key.Where {
			key.Key = cmp.Or(g.at, key.Key)
		}
	}
	return err
}

// originOf returns the place that last set the key, or else a key that conflicts with it. A key
// that varies takes precedence, because the configuration alone is valid.
func (l *loader) originOf(e *KeyError) string {
	for _, key := range e.With {
		if g := l.last(key); g.where == varyFlag && OfSystem(key) &&
			l.origin(e.Key) != varyFlag {
			return fmt.Sprintf("%s %s=%s", varyFlag, key, strings.Trim(Show(g.Value), `"`))
		}
	}
	for _, key := range append([]string{e.Key}, e.With...) {
		if where := l.origin(key); where != "" && l.chosen(key) {
			return where
		}
	}
	return cmp.Or(l.origin(e.Key), builtInDefault)
}

// cardError returns an error about a changed figure of the card.
func (l *loader) cardError(figure string, err error) error {
	return l.keyError("card."+figure, Show(l.cfg.Card[figure]), err.Error())
}

// placeText is place for an error of another package whose text starts with its key.
func (l *loader) placeText(err error) error {
	key := err.Error()
	if i := strings.IndexAny(key, " :"); i >= 0 {
		key = key[:i]
	}
	if where := l.origin(key); where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// placeError is place for an error that names no key.
func (l *loader) placeError(key string, err error) error {
	value := l.cfg.Model
	if key == "gpu" {
		value = l.cfg.GPU
	}
	return l.place(&KeyError{Key: key, Value: quote(value), Reason: err.Error(), Err: err})
}
