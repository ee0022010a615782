package config

import (
	"strconv"
	"strings"
)

// keyLines maps each key of a TOML document to its line, counted from 1. Keys
// are dotted paths; the i-th element of an array of tables is name[i], and name
// is where the first one is. Keys
// within inline tables are left to the key that holds them. The document must
// have passed the TOML parser; on any other text the result is merely useless.
func keyLines(doc string) map[string]int {
	lines := map[string]int{}
	elements := map[string]int{}
	prefix := ""
	s := valueSkipper{}
	for i, line := range strings.Split(doc, "\n") {
		if s.inside() {
			s.skip(line)
			continue
		}
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#':
		case strings.HasPrefix(text, "[["):
			name := elementPath(splitKey(text[2:], ']'), elements)
			prefix = name + "[" + strconv.Itoa(elements[name]) + "]"
			if elements[name]++; elements[name] == 1 {
				lines[name] = i + 1
			}
			lines[prefix] = i + 1
		case text[0] == '[':
			prefix = elementPath(splitKey(text[1:], ']'), elements)
			lines[prefix] = i + 1
		default:
			parts := splitKey(text, '=')
			if prefix != "" {
				parts = append([]string{prefix}, parts...)
			}
			for n := range parts { // a dotted key opens its tables too
				key := strings.Join(parts[:n+1], ".")
				if _, ok := lines[key]; !ok || n+1 == len(parts) {
					lines[key] = i + 1
				}
			}
			if _, value, ok := cutUnquoted(text, '='); ok {
				s.skip(value)
			}
		}
	}
	return lines
}

// elementPath joins the parts of a header. A part that is an array of tables,
// of which elements counts those so far, means the last of them, unless it ends
// the header.
func elementPath(parts []string, elements map[string]int) string {
	path := ""
	for i, part := range parts {
		if path += part; i+1 < len(parts) {
			if n := elements[path]; n > 0 {
				path += "[" + strconv.Itoa(n-1) + "]"
			}
			path += "."
		}
	}
	return path
}

// splitKey splits the dotted key that starts s and ends before end.
func splitKey(s string, end byte) []string {
	key, _, _ := cutUnquoted(s, end)
	var parts []string
	for more := true; more; {
		var part string
		part, key, more = cutUnquoted(key, '.')
		part = strings.TrimSpace(part)
		if len(part) >= 2 && (part[0] == '"' || part[0] == '\'') && part[len(part)-1] == part[0] {
			part = part[1 : len(part)-1]
		}
		parts = append(parts, part)
	}
	return parts
}

// cutUnquoted is strings.Cut at the first sep outside quotes.
func cutUnquoted(s string, sep byte) (before, after string, found bool) {
	var open byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case open != 0:
			if c == '\\' && open == '"' {
				i++
			} else if c == open {
				open = 0
			}
		case c == sep:
			return s[:i], s[i+1:], true
		case c == '"' || c == '\'':
			open = c
		}
	}
	return s, "", false
}

// valueSkipper follows a value over line ends: strings in triple quotes and
// arrays.
type valueSkipper struct {
	triple string // the quotes that close an open multi-line string
	depth  int    // open brackets
}

func (v *valueSkipper) inside() bool { return v.triple != "" || v.depth > 0 }

func (v *valueSkipper) skip(line string) {
	for line != "" {
		if v.triple != "" {
			i := strings.Index(line, v.triple)
			if esc := strings.IndexByte(line, '\\'); v.triple == `"""` && esc >= 0 && esc < i {
				line = line[min(esc+2, len(line)):]
				continue
			}
			if i < 0 {
				return
			}
			line, v.triple = line[i+3:], ""
			continue
		}
		switch c := line[0]; {
		case c == '#':
			return
		case strings.HasPrefix(line, `"""`), strings.HasPrefix(line, `'''`):
			v.triple, line = line[:3], line[3:]
		case c == '"' || c == '\'':
			line = skipString(line)
		default:
			switch c {
			case '[', '{':
				v.depth++
			case ']', '}':
				v.depth--
			}
			line = line[1:]
		}
	}
}

// skipString returns what follows the quoted string that starts s.
func skipString(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' && s[0] == '"' {
			i++
		} else if s[i] == s[0] {
			return s[i+1:]
		}
	}
	return ""
}
