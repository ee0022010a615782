package show

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain escapes terminal control characters except line ends and tabs, and bytes that are not
// UTF-8. Names of files, models and sources come from others and might redraw a terminal.
func Plain(text string) string {
	if !strings.ContainsFunc(text, controls) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		switch r, size = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\u%04x`, text[i])
		case controls(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+size])
		}
	}
	return b.String()
}

func controls(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == utf8.RuneError)
}

// OneLine also escapes line ends and tabs, so that a name stays in its line and cell.
func OneLine(name string) string {
	if strings.ContainsAny(name, "\n\r\t") {
		name = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(name)
	}
	return Plain(name)
}
