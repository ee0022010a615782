package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// effects are the keys that the user set: keys that some run uses, and warnings about the others.
type effects struct {
	used   map[string]bool
	unused map[string]string
}

func newEffects() effects {
	return effects{map[string]bool{}, map[string]string{}}
}

// add merges the effects of another configuration of the same sweep.
func (e *effects) add(other effects) {
	for key, used := range other.used {
		e.used[key] = e.used[key] || used
	}
	maps.Copy(e.unused, other.unused)
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
	return all
}

// effects determines which chosen keys the runs of the configuration use.
func (l *loader) effects() effects {
	e := newEffects()
	points := l.cfg.Points()
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
		if key := "card." + figure; l.asked(key) {
			need(key, hw.ChangeUse(figure), value, l.origin(key), points)
		}
	}
	tables := append(l.cfg.tables(), settable{"goodput", &l.goodput})
	if l.plan != nil {
		tables = append(tables, settable{"plan", l.plan})
	}
	for _, t := range tables {
		for _, f := range FieldsOf(t.v) {
			// A plan decides the number of replicas behind the router.
			if key := t.path(f.Key); l.asked(key) && !(l.buys && t.name == "fleet") {
				look(key, f, l.origin(key), points)
			}
		}
	}
	sets := func(system, key string) bool { // whatever [system] says
		custom := l.customNamed(system)
		return custom != nil && lastOf(custom.settings, key) != nil && !l.byFlag(key)
	}
	for i := range l.cfg.Systems {
		s := &l.cfg.Systems[i]
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
