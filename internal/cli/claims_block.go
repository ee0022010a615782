package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
)

// onPage is what a page has of an answer, in Markdown: all but its title and what is folded.
func onPage(d *doc.Doc) (string, error) {
	page := doc.Doc{Answers: d.Answers, Tables: slices.DeleteFunc(slices.Clone(d.Tables),
		func(t doc.Table) bool { return t.Folded })}
	var text bytes.Buffer
	err := show.Markdown(&text, &page)
	return strings.TrimPrefix(text.String(), "\n"), err
}

// cutBlock returns what stands up to the line <!-- name --> of a file, that line
// included, and from the line <!-- /name --> on.
func cutBlock(path, name string) (before, after string, err error) {
	text, err := files.ReadResult(path)
	if err != nil {
		return "", "", err
	}
	start, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(text), start)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", fmt.Errorf("%s: no lines %q and %q to write between", path,
			strings.TrimSpace(start), end)
	}
	return before + start, end + after, nil
}

// writeBlock replaces what stands between the lines <!-- name --> and
// <!-- /name --> of a file.
func writeBlock(path, name, block string) error {
	before, after, err := cutBlock(path, name)
	if err != nil {
		return err
	}
	return files.Write(path, []byte(before+block+after))
}
