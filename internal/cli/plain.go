package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainWriter is what commands print to. Names of files, models, sets and sources come from
// others: what of them would control a terminal is escaped as in JSON. It keeps the first error, so
// that output that is lost is no success.
type plainWriter struct {
	w   io.Writer
	err error
}

func (p *plainWriter) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.w, plain(string(text)))
	if p.err == nil {
		p.err = err
	}
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// plain escapes all that controls a terminal but line ends and tabs, and bytes that are no UTF-8.
func plain(text string) string {
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

// inCell escapes the line ends and tabs of a name, too, so that it stays on its line and in its
// cell.
func inCell(name string) string {
	if strings.ContainsAny(name, "\n\r\t") {
		name = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(name)
	}
	return plain(name)
}

// tags are how HTML within Markdown begins.
var tags = regexp.MustCompile(`<([A-Za-z/!?])`)

// markdownRow is a row of a Markdown table. Its cells are on one line and have no columns or tags
// of their own.
func markdownRow(cells ...string) string {
	var b strings.Builder
	for _, cell := range cells {
		cell = strings.NewReplacer(`\`, `\\`, "|", `\|`).Replace(inCell(cell))
		b.WriteString("| " + strings.TrimLeft(tags.ReplaceAllString(cell, "&lt;$1")+" ", " "))
	}
	return b.String() + "|\n"
}

// oneLine keeps a text on its line, whatever names it has.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// unescaped is what data are written to, for other programs: it escapes on a terminal only.
func unescaped(w io.Writer) io.Writer {
	if p, ok := w.(*plainWriter); ok && !isTerminal(w) {
		return p.w
	}
	return w
}
