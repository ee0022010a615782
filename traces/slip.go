package traces

import (
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// A slip is a key that is not read and seems a misspelt one, which says what prompts share or
// whose turns they are: without it a file is read as any other, only with fewer hits.
type slip struct {
	found, meant string // "" of none
	line         int
}

// slipOf looks among the keys of a line, of which some are known, for one like a name that is meant
// and missing.
func slipOf(keys, known, meant []string) (s slip) {
	has := func(names []string, key string) bool {
		return slices.ContainsFunc(names, func(k string) bool { return strings.EqualFold(k, key) })
	}
	var lower, missing []string
	for _, m := range meant {
		if !has(keys, m) {
			lower, missing = append(lower, strings.ToLower(m)), append(missing, m)
		}
	}
	for _, k := range keys {
		if has(known, k) || has(meant, k) {
			continue
		}
		if i := slices.Index(lower, nearest.Name(k, lower)); i >= 0 {
			return slip{found: k, meant: missing[i]}
		}
	}
	return slip{}
}

// warning says where the first is, and what is lost without it; nil of none.
func (s *slip) warning(file, lost string) []warn.Warning {
	if s.found == "" {
		return nil
	}
	return []warn.Warning{warn.New(warn.TraceContent,
		"a key is not read and seems misspelt; without it %s: %s:%d: %q (did "+
			"you mean %q?)", lost, file, s.line, short(s.found), s.meant).About("misspelt key")}
}
