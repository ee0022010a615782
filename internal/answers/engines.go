package answers

import (
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// Engines are engines, and the systems that run under each.
type Engines []struct {
	engine  string
	systems []string
}

// EnginesOf lists the engines of systems.
func EnginesOf(systems []sim.Spec) (all Engines) {
	for i := range systems {
		s := &systems[i]
		j := 0
		for j < len(all) && all[j].engine != s.Engine {
			j++
		}
		if j == len(all) {
			all = append(all, struct {
				engine  string
				systems []string
			}{engine: s.Engine})
		}
		if !slices.Contains(all[j].systems, s.Name) {
			all[j].systems = append(all[j].systems, s.Name)
		}
	}
	return all
}

// String says which engine has which systems; only the engine, where there is one.
func (all Engines) String() string {
	if len(all) == 1 {
		return "engine " + all[0].engine
	}
	return "engines " + all.list()
}

func (all Engines) list() string {
	words := make([]string, len(all))
	for i, e := range all {
		words[i] = e.engine + " (" + strings.Join(e.systems, ", ") + ")"
	}
	return strings.Join(words, ", ")
}

// Warnings reports that systems run under different engines, because part of their difference then
// comes from the engines. It is empty if all run under one engine.
func (all Engines) Warnings() []warn.Said {
	if len(all) < 2 {
		return nil
	}
	return []warn.Said{{Warning: warn.New(warn.Engines, "different engines: %s; a part of what the "+
		"systems differ by is the engines'; --set system.engine=NAME runs all under one", all.list())}}
}
