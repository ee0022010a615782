package tomlfile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

func TestLinesOf(t *testing.T) {
	const text = `a = 1 # [x]
"b c" = "x = 2 [y]"
[t]
s = """
many
lines"""
rows = [
  { v = 1, w = [1, 2] },   # { not a row }

  { v = 2 },
]
[[r]]
k = 'a\'
[r.sub]
k = 1
[[r]]
x.y = 2
`
	ix := tomlfile.LinesOf(text)
	for path, line := range map[string]int{
		"a": 1, "b c": 2, "t": 3, "t.s": 4, "t.rows": 7, "t.rows[0].v": 8, "t.rows[0].w[1]": 8,
		"t.rows[1].v": 10, "r": 12, "r[1].x": 17,
		"r[0]": 12, "r[0].k": 13, "r[0].sub.k": 15, "r[1]": 16, "r[1].x.y": 17,
	} {
		if ix[path] != line {
			t.Errorf("%s: want line %d, got %d", path, line, ix[path])
		}
	}
	if n := ix.Of("r[1].missing.deep"); n != 16 {
		t.Errorf("a missing key is on the line of its table, got %d", n)
	}
}

// FuzzLinesOf holds the index to the parser that decodes: the keys outside of inline tables are
// the same.
func FuzzLinesOf(f *testing.F) {
	f.Add("a = 1\n[b]\nc = [1,\n2]\n")
	f.Add("a = '''\nb = 1\n'''\nc.d = \"\\\"\"\n")
	f.Add("a = [ { b = ")
	f.Fuzz(func(t *testing.T, text string) {
		found := tomlfile.LinesOf(text) // ends on any input
		var tree map[string]any
		meta, err := toml.Decode(text, &tree)
		if err != nil || strings.ContainsAny(text, "{\\") || strings.Contains(text, "[[") {
			return
		}
		for _, key := range meta.Keys() {
			odd := func(part string) bool { return part == "" || strings.ContainsAny(part, ".\"'# \t=[]") }
			if path := strings.Join(key, "."); !slices.ContainsFunc(key, odd) && found[path] == 0 {
				t.Errorf("no line for %q in %q, only %v", path, text, maps.Collect(maps.All(found)))
			}
		}
	})
}
