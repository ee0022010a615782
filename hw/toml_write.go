package hw

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// columns is the longest line of a written file.
const columns = 100

// A key with a string, or with a list of strings, on a line of its own, and a string of a list.
const (
	stringLine = `^(\s*)([A-Za-z0-9_]+ = )"(.*)"$`
	listLine   = `^(\s*)([A-Za-z0-9_]+ = )\[(".*")\]$`
	element    = `"((?:[^"\\]|\\.)*)"`
)

// encodeTOML writes a value as TOML. Long strings go over several lines.
func encodeTOML(v any) ([]byte, error) {
	var buf, out bytes.Buffer
	if err := toml.NewEncoder(&buf).Encode(v); err != nil {
		return nil, err
	}
	for line := range strings.Lines(buf.String()) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > columns {
			line = wrapLine(line)
		}
		out.WriteString(line + "\n")
	}
	return out.Bytes(), nil
}

// wrapLine breaks a line with a string or a list of strings.
func wrapLine(line string) string {
	if m := regexp.MustCompile(stringLine).FindStringSubmatch(line); m != nil {
		return wrapString(m[1], m[2], m[3])
	}
	m := regexp.MustCompile(listLine).FindStringSubmatch(line)
	if m == nil {
		return line
	}
	out := m[1] + m[2] + "["
	for _, e := range regexp.MustCompile(element).FindAllStringSubmatch(m[3], -1) {
		out += "\n" + wrapString(m[1]+"  ", "", e[1]) + ","
	}
	return out + "\n" + m[1] + "]"
}

// wrapString is a string over several lines: a backslash at a line's end hides the break and the
// spaces after it.
func wrapString(indent, key, text string) string {
	if short := indent + key + `"` + text + `"`; len(short) < columns {
		return short
	}
	var out strings.Builder
	line := indent + key + `"""`
	for i, word := range strings.SplitAfter(text, " ") {
		if i > 0 && len(line)+len(word)+len(`"""`) > columns {
			out.WriteString(line + "\\\n")
			line = indent + "  "
		}
		line += word
	}
	out.WriteString(line + `"""`)
	return out.String()
}
