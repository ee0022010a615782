package hw

import (
	"strconv"
	"strings"
)

// lineIndex maps the path of each key, table and array element of a TOML file
// to its line: "linears[2].unit" -> 17. Validation runs on decoded values and
// needs it to point at the text.
type lineIndex map[string]int

// line returns the line of path, or of the nearest enclosing element; 0 if
// there is none.
func (ix lineIndex) line(path string) int {
	for path != "" {
		if n, ok := ix[path]; ok {
			return n
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return 0
		}
		path = path[:cut]
	}
	return 0
}

// indexLines scans a file that the TOML parser has accepted. On anything else
// it stops early and the index is incomplete.
func indexLines(src string) lineIndex {
	s := &lineScanner{src: src, line: 1, index: lineIndex{}, arrays: map[string]int{}}
	prefix := ""
	for s.blank(true); s.pos < len(s.src); s.blank(true) {
		if s.peek() == '[' {
			prefix = s.header()
			continue
		}
		if !s.pair(prefix) {
			break
		}
	}
	return s.index
}

type lineScanner struct {
	src       string
	pos, line int
	index     lineIndex
	arrays    map[string]int // elements seen of each [[array]]
}

func (s *lineScanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

// blank skips spaces, and comments and line ends too when asked.
func (s *lineScanner) blank(lines bool) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
		case lines && c == '\n':
			s.line++
		case lines && c == '#':
			for s.pos < len(s.src) && s.src[s.pos] != '\n' {
				s.pos++
			}
			continue
		default:
			return
		}
		s.pos++
	}
}

// header reads [a.b] or [[a.b]] and returns its path with indices.
func (s *lineScanner) header() string {
	s.pos++
	array := s.peek() == '['
	if array {
		s.pos++
	}
	keys := s.key()
	path := ""
	for i, k := range keys {
		path = joinPath(path, k)
		last := i == len(keys)-1
		if last && array {
			s.arrays[path]++
		}
		if n := s.arrays[path]; n > 0 {
			path += "[" + strconv.Itoa(n-1) + "]"
		}
	}
	s.index[path] = s.line
	for s.peek() == ']' {
		s.pos++
	}
	return path
}

// key reads a possibly dotted, possibly quoted key.
func (s *lineScanner) key() []string {
	var keys []string
	for {
		s.blank(false)
		start := s.pos
		if c := s.peek(); c == '"' || c == '\'' {
			s.text()
			keys = append(keys, strings.Trim(s.src[start:s.pos], `"'`))
		} else {
			for s.pos < len(s.src) && !strings.ContainsRune(" \t\r\n.=]", rune(s.src[s.pos])) {
				s.pos++
			}
			keys = append(keys, s.src[start:s.pos])
		}
		s.blank(false)
		if s.peek() != '.' {
			return keys
		}
		s.pos++
	}
}

// pair reads key = value under prefix; false when there is none.
func (s *lineScanner) pair(prefix string) bool {
	path := prefix
	for _, k := range s.key() {
		path = joinPath(path, k)
	}
	if s.peek() != '=' {
		return false
	}
	s.index[path] = s.line
	s.pos++
	return s.value(path)
}

// value skips one value and records what it holds.
func (s *lineScanner) value(path string) bool {
	s.blank(false)
	start := s.pos
	switch s.peek() {
	case '"', '\'':
		s.text()
	case '[':
		s.pos++
		for i := 0; ; i++ {
			s.blankOrComma()
			if s.peek() == ']' {
				s.pos++
				break
			}
			element := path + "[" + strconv.Itoa(i) + "]"
			s.index[element] = s.line
			if !s.value(element) {
				return false
			}
		}
	case '{':
		s.pos++
		for {
			s.blankOrComma()
			if s.peek() == '}' {
				s.pos++
				break
			}
			if !s.pair(path) {
				return false
			}
		}
	default:
		for s.pos < len(s.src) && !strings.ContainsRune(",]}#\n", rune(s.src[s.pos])) {
			s.pos++
		}
	}
	return s.pos > start
}

func (s *lineScanner) blankOrComma() {
	for s.blank(true); s.peek() == ','; s.blank(true) {
		s.pos++
	}
}

// text skips a string of any of TOML's four kinds.
func (s *lineScanner) text() {
	quote := s.src[s.pos : s.pos+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.src[s.pos:], triple) {
		quote = triple
	}
	s.pos += len(quote)
	for s.pos < len(s.src) && !strings.HasPrefix(s.src[s.pos:], quote) {
		switch c := s.src[s.pos]; {
		case c == '\\' && quote[0] == '"' && s.pos+1 < len(s.src) && s.src[s.pos+1] != '\n':
			s.pos++
		case c == '\n':
			s.line++
		}
		s.pos++
	}
	s.pos = min(s.pos+len(quote), len(s.src))
}

func joinPath(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
