package show

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// tags matches the beginning of HTML in Markdown.
var tags = regexp.MustCompile(`<([A-Za-z/!?])`)

// markdown puts a text on one line, without HTML tags.
func markdown(text string) string { return tags.ReplaceAllString(OneLine(text), "&lt;$1") }

// Markdown writes a document. A chart is a line with the names of its series, because its points
// are in the CSV and the picture.
func Markdown(w io.Writer, d *doc.Doc) error {
	b := new(bytes.Buffer)
	if d.Title != "" {
		fmt.Fprintf(b, "# %s\n", markdown(d.Title))
	}
	for _, text := range d.Lead {
		fmt.Fprintf(b, "\n%s\n", markdown(text))
	}
	list(b, "Answers", d.Answers)
	var warnings []string
	for _, one := range d.Warnings {
		warnings = append(warnings, of(one))
	}
	list(b, "Read with care", warnings)
	for _, f := range sections(d) {
		var charts []string
		for _, c := range f.Charts {
			charts = append(charts, series(c))
		}
		list(b, f.Title, append([]string{f.Caption}, charts...))
	}
	for _, g := range groups(d.Tables) {
		level := "#"
		if g.Tables[0].Under != "" {
			fmt.Fprintf(b, "\n## %s\n", markdown(g.Heading))
			level = "##"
		}
		for _, t := range g.Tables {
			if t.Title != "" {
				fmt.Fprintf(b, "\n#%s %s\n", level, markdown(t.Title))
			}
			markdownTable(b, t)
		}
	}
	for _, f := range d.Files {
		fence := "```"
		for strings.Contains(f.Text, fence) {
			fence += "`"
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n%s\n%s\n", markdown(f.Name), fence,
			strings.TrimSuffix(f.Text, "\n"), fence)
	}
	_, err := b.WriteTo(w)
	return err
}

// list writes lines under a heading; nothing if all lines are empty.
func list(w io.Writer, heading string, lines []string) {
	for _, text := range lines {
		if text == "" {
			continue
		}
		if heading != "" {
			fmt.Fprintf(w, "\n## %s\n\n", markdown(heading))
			heading = ""
		}
		fmt.Fprintf(w, "- %s\n", markdown(text))
	}
}

func markdownTable(w io.Writer, t *doc.Table) {
	if t.Note != "" {
		fmt.Fprintf(w, "\n%s\n", markdown(t.Note))
	}
	shown := t.Shown()
	heads, rules := make([]string, len(shown)), "|"
	for i, c := range shown {
		heads[i] = strings.TrimSpace(t.Columns[c].Name + " " + t.Columns[c].Unit)
		if t.Columns[c].Number {
			rules += "-:|"
		} else {
			rules += "-|"
		}
	}
	fmt.Fprintf(w, "\n%s%s\n", MarkdownRow(heads...), rules)
	for _, r := range t.Rows {
		cells := make([]string, len(shown))
		for i, c := range shown {
			cells[i] = r.At(c)
		}
		fmt.Fprint(w, MarkdownRow(cells...))
	}
	for _, line := range t.Legend {
		fmt.Fprintf(w, "\n%s\n", markdown(line))
	}
}

// MarkdownRow returns a row of a table. Cells are on one line, without column separators or tags.
func MarkdownRow(cells ...string) string {
	var b strings.Builder
	for _, cell := range cells {
		cell = strings.NewReplacer(`\`, `\\`, "|", `\|`).Replace(OneLine(cell))
		cell = tags.ReplaceAllString(cell, "&lt;$1")
		b.WriteString("| " + strings.TrimLeft(cell+" ", " "))
	}
	return b.String() + "|\n"
}

// of returns a warning with the results that it is about.
func of(w warn.Warning) string {
	if w.Of == "" {
		return w.Text
	}
	return w.Text + " (" + w.Of + ")"
}

// series describes a chart.
func series(c *doc.Chart) string {
	text := "chart"
	if c.Title != "" {
		text += " " + c.Title
	}
	text += ": " + c.Y
	if c.X != "" && c.X != c.Y {
		text += " over " + c.X
	}
	var names []string
	for _, l := range c.Lines {
		names = append(names, l.Name)
	}
	for i := range c.Bars {
		names = append(names, c.Bars[i].Label())
	}
	if h := c.Heat; h != nil {
		names = append(names, h.A+" by "+h.B)
	}
	return text + ": " + strings.Join(names, ", ")
}
