package tomlfile

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// columns is the maximum line length of an encoded value.
const columns = 100

// Encode encodes a value as TOML and wraps long strings.
func Encode(v any) ([]byte, error) {
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

// wrapLine wraps a line of the encoder with a string or a list of strings.
func wrapLine(line string) string {
	key, value, found := strings.Cut(line, " = ")
	name := strings.TrimLeft(key, " ")
	indent := key[:len(key)-len(name)]
	switch {
	case !found || strings.HasPrefix(name, `"`):
		return line
	case strings.HasPrefix(value, `"`):
		return wrapString(indent, name+" = ", value[1:len(value)-1])
	case strings.HasPrefix(value, "[") && !strings.HasPrefix(value, `["`):
		return wrapNumbers(indent, name+" = ", value)
	case !strings.HasPrefix(value, `["`):
		return line
	}
	out := indent + name + " = ["
	for rest := value[1:]; rest[0] == '"'; rest = strings.TrimPrefix(rest[1:], ", ") {
		end := 1
		for ; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		out += "\n" + wrapString(indent+"  ", "", rest[1:end]) + ","
		rest = rest[end:]
	}
	return out + "\n" + indent + "]"
}

// wrapString returns a string over several lines. A backslash at the end of a line hides the break
// and the following spaces.
func wrapString(indent, key, text string) string {
	if short := indent + key + `"` + text + `"`; len(short) < columns {
		return short
	}
	return wrap(indent, indent+key+`"""`, strings.SplitAfter(text, " "), "\\", `"""`)
}

// wrapNumbers returns a list of numbers over several lines, integers without a fraction.
func wrapNumbers(indent, key, list string) string {
	list = strings.NewReplacer(".0,", ",", ".0]", "]").Replace(list)
	list = strings.TrimPrefix(list, "[")
	return strings.ReplaceAll(wrap(indent, indent+key+"[", strings.SplitAfter(list, ", "), "", ""),
		" \n", "\n")
}

// wrap puts pieces on lines, the first of which begins with line. Each but the last ends with more,
// and the last with end.
func wrap(indent, line string, pieces []string, more, end string) string {
	var out strings.Builder
	for i, piece := range pieces {
		if i > 0 && len(line)+len(piece)+len(end) > columns {
			out.WriteString(line + more + "\n")
			line = indent + "  "
		}
		line += piece
	}
	return out.String() + line + end
}
