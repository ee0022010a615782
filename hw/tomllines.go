package hw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// TOMLLines maps the path of each key, table and array element of a TOML file to its line, counted
// from 1: "linears[2].unit" -> 17. An array of tables, and a table that dotted keys open, has the
// line of its first mention. Checks after decoding use it to point at the text.
type TOMLLines map[string]int

// Of returns the line of path, or of the nearest enclosing element; 0 if there is none.
func (ix TOMLLines) Of(path string) int {
	for path != "" {
		if n, ok := ix[path]; ok {
			return n
		}
		end := strings.LastIndexAny(path, ".[")
		if end < 0 {
			return 0
		}
		path = path[:end]
	}
	return 0
}

// LinesOfTOML indexes a file that a TOML parser has accepted; otherwise the part before the first
// error. (github.com/BurntSushi/toml, which decodes files, has no positions of keys.)
func LinesOfTOML(src string) TOMLLines {
	x := lineIndexer{index: TOMLLines{}, arrays: map[string]int{}}
	for i := range len(src) {
		if src[i] == '\n' {
			x.ends = append(x.ends, i)
		}
	}
	x.parser.Reset([]byte(src))
	table := ""
	for x.parser.NextExpression() {
		switch e := x.parser.Expression(); e.Kind {
		case unstable.KeyValue:
			x.pair(table, e)
		case unstable.Table, unstable.ArrayTable:
			table = x.header(e)
		}
	}
	return x.index
}

type lineIndexer struct {
	parser unstable.Parser
	ends   []int // offsets of line ends
	index  TOMLLines
	arrays map[string]int // number of elements so far of each [[array]]
}

func (x *lineIndexer) lineOf(n *unstable.Node) int {
	i, _ := slices.BinarySearch(x.ends, int(n.Raw.Offset))
	return i + 1
}

// header indexes [a.b] or [[a.b]] and returns its path with the indices of arrays.
func (x *lineIndexer) header(e *unstable.Node) (path string) {
	line := 0
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		path, line = joinPath(path, string(key.Data)), x.lineOf(key)
		x.first(path, line)
		if keys.IsLast() && e.Kind == unstable.ArrayTable {
			x.arrays[path]++
		}
		if n := x.arrays[path]; n > 0 {
			path += "[" + strconv.Itoa(n-1) + "]"
		}
	}
	x.index[path] = line
	return path
}

// first records the line of a path that has none yet.
func (x *lineIndexer) first(path string, line int) {
	if _, ok := x.index[path]; !ok {
		x.index[path] = line
	}
}

// pair indexes key = value in a table.
func (x *lineIndexer) pair(path string, e *unstable.Node) {
	line := 0
	for keys := e.Key(); keys.Next(); {
		path, line = joinPath(path, string(keys.Node().Data)), x.lineOf(keys.Node())
		x.first(path, line)
	}
	x.index[path] = line
	x.value(path, e.Value())
}

// value indexes the contents of an inline table or an array.
func (x *lineIndexer) value(path string, v *unstable.Node) {
	switch children := v.Children(); v.Kind {
	case unstable.InlineTable:
		for children.Next() {
			x.pair(path, children.Node())
		}
	case unstable.Array:
		for i := 0; children.Next(); i++ {
			element := path + "[" + strconv.Itoa(i) + "]"
			if n := children.Node(); n.Raw.Length > 0 {
				x.index[element] = x.lineOf(n)
			}
			x.value(element, children.Node())
		}
	}
}
