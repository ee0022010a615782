package tomlfile

import (
	"strconv"
	"strings"
)

// Lines maps the path of each key, table and array element to its line, counted from 1:
// "linears[2].unit" -> 17. An array of tables, and a table that dotted keys open, has the line of
// its first mention. (github.com/BurntSushi/toml has no positions of keys.)
type Lines map[string]int

// Of returns the line of path, or of the nearest enclosing element; 0 if there is none.
func (ix Lines) Of(path string) int {
	for path != "" {
		if n, ok := ix[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}

// Join appends a key to the path of its table.
func Join(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}

// LinesOf indexes a text that a TOML parser has accepted. Of any other text it indexes the part
// before the first error, and possibly more.
func LinesOf(text string) Lines {
	s := scanner{rest: text, line: 1, index: Lines{}, arrays: map[string]int{}}
	for table := ""; s.skip(); {
		if s.rest[0] == '[' {
			table = s.header()
		} else {
			s.pair(table)
		}
	}
	return s.index
}

// scanner reads a text from its front. It drops the rest of a text that it cannot read.
type scanner struct {
	rest   string
	line   int
	index  Lines
	arrays map[string]int // number of elements so far of each [[array]]
}

// take removes n bytes and returns them.
func (s *scanner) take(n int) string {
	text := s.rest[:n]
	s.line += strings.Count(text, "\n")
	s.rest = s.rest[n:]
	return text
}

// skip removes space and comments, and reports whether text is left.
func (s *scanner) skip() bool {
	for {
		s.take(len(s.rest) - len(strings.TrimLeft(s.rest, " \t\r\n")))
		if !strings.HasPrefix(s.rest, "#") {
			return s.rest != ""
		}
		s.take(s.before("\n"))
	}
}

// before returns the number of bytes before the first of chars, or of all bytes.
func (s *scanner) before(chars string) int {
	if n := strings.IndexAny(s.rest, chars); n >= 0 {
		return n
	}
	return len(s.rest)
}

// header indexes [a.b] or [[a.b]] and returns its path with the indices of arrays.
func (s *scanner) header() (path string) {
	array := strings.HasPrefix(s.rest, "[[")
	line := s.line
	for s.rest = strings.TrimLeft(s.rest, "["); ; s.take(1) {
		path = Join(path, s.key())
		s.first(path)
		more := strings.HasPrefix(s.rest, ".")
		if array && !more {
			s.arrays[path]++
		}
		if n := s.arrays[path]; n > 0 {
			path += "[" + strconv.Itoa(n-1) + "]"
		}
		if !more {
			break
		}
	}
	s.index[path] = line
	s.take(s.before("\n"))
	return path
}

// pair indexes key = value in a table.
func (s *scanner) pair(path string) {
	line := s.line
	for path = Join(path, s.key()); strings.HasPrefix(s.rest, "."); path = Join(path, s.key()) {
		s.first(path)
		s.take(1)
	}
	if s.index[path] = line; strings.HasPrefix(s.rest, "=") {
		s.take(1)
		s.value(path)
	} else {
		s.rest = ""
	}
}

// first records the line of a path that has none yet.
func (s *scanner) first(path string) {
	if _, ok := s.index[path]; !ok {
		s.index[path] = s.line
	}
}

// key removes one part of a dotted key, with the space around it.
func (s *scanner) key() (key string) {
	if s.skip(); strings.HasPrefix(s.rest, `"`) || strings.HasPrefix(s.rest, "'") {
		quoted := s.quoted()
		key = strings.Trim(quoted, quoted[:1])
		if text, err := strconv.Unquote(quoted); err == nil && quoted[0] == '"' {
			key = text
		}
	} else {
		key = s.take(s.before(" \t\r\n.=]"))
	}
	s.rest = strings.TrimLeft(s.rest, " \t")
	return key
}

// quoted removes a string and returns it with its quotes.
func (s *scanner) quoted() string {
	quote := s.rest[:1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(s.rest, long) {
		quote = long
	}
	n := len(quote)
	for ; n < len(s.rest) && !strings.HasPrefix(s.rest[n:], quote); n++ {
		if s.rest[n] == '\\' && quote[0] == '"' {
			n++
		}
	}
	n += len(quote)
	for len(quote) > 1 && n < len(s.rest) && s.rest[n] == quote[0] {
		n++ // a long string may end with quotes of its own
	}
	return s.take(min(n, len(s.rest)))
}

// value removes a value, and indexes the contents of an inline table or an array.
func (s *scanner) value(path string) {
	if !s.skip() {
		return
	}
	switch s.rest[0] {
	case '"', '\'':
		s.quoted()
	case '[':
		s.take(1)
		for i := 0; s.element("]"); i++ {
			element := path + "[" + strconv.Itoa(i) + "]"
			s.index[element] = s.line
			s.value(element)
		}
	case '{':
		s.take(1)
		for s.element("}") {
			s.pair(path)
		}
	default:
		if n := s.before(",]}#\n"); n > 0 {
			s.take(n)
		} else {
			s.rest = ""
		}
	}
}

// element moves to the next element of an array or inline table; false at its end.
func (s *scanner) element(end string) bool {
	if s.skip() && s.rest[0] == ',' {
		s.take(1)
		s.skip()
	}
	if strings.HasPrefix(s.rest, end) {
		s.take(1)
		return false
	}
	return s.rest != ""
}
