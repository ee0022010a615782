package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// effects are the keys that the user set: keys that some run uses, warnings about the others, and
// about figures of [card] that change another card than they seem to.
type effects struct {
	used   map[string]bool
	unused map[string]lack
	cards  map[string]string
}

// lack is the reason why a key has no effect, and of how many conditions.
type lack struct {
	conditions int
	text       string
}

func newEffects() effects {
	return effects{map[string]bool{}, map[string]lack{}, map[string]string{}}
}

// say adds a reason why a key has no effect, unless there is one of no more conditions.
func (e *effects) say(conditions int, err KeyError) {
	if before, ok := e.unused[err.Key]; !ok || conditions < before.conditions {
		e.unused[err.Key] = lack{conditions, err.Error()}
	}
}

// add merges the effects of another configuration of the same sweep.
func (e *effects) add(other effects) {
	for key, used := range other.used {
		e.used[key] = e.used[key] || used
	}
	for key, text := range other.unused {
		if before, ok := e.unused[key]; !ok || text.conditions <= before.conditions {
			e.unused[key] = text
		}
	}
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
			all = append(all, warn.New(warn.Unused, "%s", e.unused[key].text).About(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.cards)) {
		all = append(all, warn.New(warn.OtherCard, "%s", e.cards[key]).About(key))
	}
	return all
}

// find adds the effects of chosen keys in the runs of a system to the effects of the loader below.
func (l *loader) find(below *loader, runs []Point) {
	e := &below.effects
	model, err := l.inputs.model(l.cfg.Model)
	if err != nil {
		return
	}
	if l.compares {
		runs = slices.Clone(runs)
		runs[0].Workload.PrefixHit = 1 // a record may have hits
	}
	look := func(key, used string, value any) {
		g := l.last(key)
		n, missing := l.missing(used, runs, &model)
		switch table, _, _ := strings.Cut(key, "."); {
		case l.compares && (table == "metrics" || table == "output"):
			missing = "the command simulate: compare takes all requests of a record, and writes its own " +
				"files"
		case table == "goodput" && !l.search && !l.buys && !l.varies:
			missing = "the command goodput, or whatif"
		case table == "plan" && !l.buys:
			missing = "the command plan"
		}
		e.used[g.at] = e.used[g.at] || missing == ""
		if missing != "" {
			e.say(n, KeyError{Where: g.where, Key: g.at, Value: Show(value), Reason: needs + missing})
		}
	}
	for figure, value := range l.cfg.Card {
		key := "card." + figure
		if l.asked(key) {
			look(key, hw.ChangeUse(figure), value)
		}
		if of := l.last(key).card; of != "" && of != l.cfg.GPU {
			e.addCard(l, figure, "stands beside gpu = %q and changes %s, which %s names; set it for that "+
				"card, or leave it out", of, l.cfg.GPU, l.origin("gpu"))
		}
	}
	for _, f := range FieldsOf(&l.cfg) {
		key := f.Key
		// A plan decides the number of replicas behind the router.
		if l.asked(key) && !(l.buys && strings.HasPrefix(key, "fleet.")) {
			look(key, f.Tag.Get("used"), f.Value.Interface())
		}
		if g := below.last(key); below.asked(key) && l.last(key).at != g.at {
			e.say(math.MaxInt, KeyError{Where: g.where, Key: key, Value: Show(g.Value),
				Reason: "has no effect in any run; [[systems]] set their own"})
		}
	}
}

// missing describes the n conditions of a tag that no run meets although it meets the others; "" if
// some run meets all.
func (l *loader) missing(tag string, points []Point, m *llm.Model) (n int, words string) {
	if tag == "" {
		return 0, ""
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
	all := make([]string, len(least))
	for i, name := range least {
		all[i] = conditions[name].words
	}
	return len(least), strings.Join(all, ", and ")
}
