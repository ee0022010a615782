package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// effects are the keys that the user set: keys that some run uses, warnings about the others, and
// about figures of [card] that change another card than they seem to.
type effects struct {
	used          map[string]bool
	unused, cards map[string]string
}

func newEffects() effects {
	return effects{map[string]bool{}, map[string]string{}, map[string]string{}}
}

// add merges the effects of another configuration of the same sweep.
func (e *effects) add(other effects) {
	for key, used := range other.used {
		e.used[key] = e.used[key] || used
	}
	maps.Copy(e.unused, other.unused)
	maps.Copy(e.cards, other.cards)
}

// addCard adds a figure of [card] that changes other cards than it seems to.
func (e *effects) addCard(l *loader, figure, format string, args ...any) {
	key := "card." + figure
	e.cards[key] = (&KeyError{Where: l.origin(key), Key: key, Value: Show(l.cfg.Card[figure]),
		Reason: fmt.Sprintf(format, args...)}).Error()
}

// addSeveral adds the figures that change each card of a sweep alike.
func (e *effects) addSeveral(s *Sweep, below *loader) {
	gpus := map[string]bool{}
	for _, p := range s.Runs() {
		gpus[p.GPU] = true
	}
	for figure := range below.cfg.Card {
		key := "card." + figure
		if len(gpus) > 1 && e.cards[key] == "" && !slices.Contains(s.Axes, key) {
			e.addCard(below, figure, "changes each of %s; an axis with zip.gpu and zip.%s gives each its "+
				"own", strings.Join(slices.Sorted(maps.Keys(gpus)), ", "), key)
		}
	}
}

// needs precedes the conditions of a key without effect.
const needs = "has no effect in any run; it needs "

// warnings lists the keys that no run uses, in the order of the keys.
func (e effects) warnings() (all []warn.Warning) {
	for _, key := range slices.Sorted(maps.Keys(e.unused)) {
		if !e.used[key] {
			all = append(all, warn.New(warn.Unused, "%s", e.unused[key]).About(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.cards)) {
		all = append(all, warn.New(warn.OtherCard, "%s", e.cards[key]).About(key))
	}
	return all
}

// effects determines which chosen keys the runs of the configuration use.
func (l *loader) effects(points []Point) effects {
	e := newEffects()
	model, err := l.inputs.model(l.cfg.Model)
	if err != nil || len(points) == 0 {
		return e
	}
	need := func(key, used string, value any, where string, of []Point) {
		missing := l.missing(used, of, &model)
		switch table, _, _ := strings.Cut(key, "."); {
		case l.compares && (table == "metrics" || table == "output"):
			missing = "the command simulate: compare takes all requests of a record, and writes its own " +
				"files"
		case table == "goodput" && !l.search && !l.buys && !l.varies:
			missing = "the command goodput, or whatif"
		case table == "plan" && !l.buys:
			missing = "the command plan"
		}
		e.used[key] = e.used[key] || missing == ""
		if missing != "" {
			e.unused[key] = (&KeyError{Where: where, Key: key, Value: Show(value),
				Reason: needs + missing}).Error()
		}
	}
	look := func(key string, f Field, where string, of []Point) {
		need(key, f.Tag.Get("used"), f.Value.Interface(), where, of)
	}
	for figure, value := range l.cfg.Card {
		key := "card." + figure
		if l.asked(key) {
			need(key, hw.ChangeUse(figure), value, l.origin(key), points)
		}
		if of := l.last(key).card; of != "" && of != l.cfg.GPU {
			e.addCard(l, figure, "stands beside gpu = %q and changes %s, which %s names; set it for that "+
				"card, or leave it out", of, l.cfg.GPU, l.origin("gpu"))
		}
	}
	for _, f := range FieldsOf(&l.cfg) {
		// A plan decides the number of replicas behind the router.
		if l.asked(f.Key) && !OfSystem(f.Key) && !(l.buys && strings.HasPrefix(f.Key, "fleet.")) {
			look(f.Key, f, l.origin(f.Key), points)
		}
	}
	sets := func(system, key string) bool { // whatever [system] says
		custom := l.customNamed(system)
		return custom != nil && lastOf(custom.settings, key) != nil && !l.byFlag(key)
	}
	for i := range l.specs {
		s := &l.specs[i]
		custom := l.customNamed(s.Name)
		own := func(p Point) bool { return p.System.Name != s.Name }
		for _, f := range FieldsOf(s) {
			key := specKey(f.Key)
			if l.asked(key) && !sets(s.Name, key) {
				look(key, f, l.origin(key), slices.DeleteFunc(slices.Clone(points),
					func(p Point) bool { return sets(p.System.Name, key) }))
				continue
			}
			if l.asked(key) && e.unused[key] == "" {
				e.unused[key] = (&KeyError{Where: l.origin(key), Key: key, Value: Show(l.last(key).Value),
					Reason: "has no effect in any run; [[systems]] set their own"}).Error()
			}
			if sets(s.Name, key) && !custom.doc.complete() {
				look(custom.path+f.Key, f, custom.doc.where(custom.path+f.Key),
					slices.DeleteFunc(slices.Clone(points), own))
			}
		}
	}
	return e
}

// missing describes the conditions of a tag that no run meets although it meets the others; "" if
// some run meets all.
func (l *loader) missing(tag string, points []Point, m *llm.Model) string {
	if tag == "" {
		return ""
	}
	names := strings.Split(tag, ",")
	least := names
	for i := range points {
		lacks := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return conditions[name].holds(&points[i], m)
		})
		if len(lacks) < len(least) || i == 0 {
			least = lacks
		}
	}
	words := make([]string, len(least))
	for i, name := range least {
		words[i] = conditions[name].words
	}
	return strings.Join(words, ", and ")
}
