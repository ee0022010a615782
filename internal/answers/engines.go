package answers

import (
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// enginesOf lists the engines of systems, each with its systems if there are several.
func enginesOf(systems []sim.Spec) (text string, several bool) {
	all := distinct(systems, func(s *sim.Spec) string { return s.Engine })
	if len(all) == 1 {
		return "engine " + all[0], false
	}
	for i, engine := range all {
		own := where(systems, func(s *sim.Spec) bool { return s.Engine == engine })
		names := distinct(own, func(s *sim.Spec) string { return s.Name })
		all[i] += " (" + strings.Join(names, ", ") + ")"
	}
	return "engines " + strings.Join(all, ", "), len(all) > 1
}

// engineWarnings reports that systems run under different engines, because part of their difference
// then comes from the engines. It is empty if all run under one engine.
func engineWarnings(systems []sim.Spec) []resultWarning {
	text, several := enginesOf(systems)
	if !several {
		return nil
	}
	return said([]warn.Warning{warn.New(warn.Engines, "different engines: %s; a part of what the "+
		"systems differ by is the engines'; --set system.engine=NAME runs all under one",
		strings.TrimPrefix(text, "engines "))}, "")
}
