package show

import (
	"io"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// csvColumns are the columns of a document as CSV. There is one line per cell, because tables and
// charts of one document have different columns. Only charts fill the last three.
var csvColumns = []string{"part", "title", "row", "column", "unit", "value", "low", "high", "runs",
	"doubts", "picture"}

// CSV writes a document. Values have full precision.
func CSV(w io.Writer, d *doc.Doc) error {
	out := files.NewCSVWriter(w)
	write := func(cells ...string) {
		out.Write(append(cells, make([]string, len(csvColumns)-len(cells))...))
	}
	write(csvColumns...)
	if d.Title != "" {
		write("title", d.Title)
	}
	for _, text := range d.Lead {
		write("lead", "", "", "", "", text)
	}
	for _, text := range d.Answers {
		write("answer", "", "", "", "", text)
	}
	for _, one := range d.Warnings {
		write("warning", "", one.Of, "", "", one.Text)
	}
	for i := range d.Tables {
		csvTable(write, &d.Tables[i])
	}
	for _, f := range d.Figures {
		for _, c := range f.Charts {
			title := strings.TrimSuffix(f.Title+": "+c.Title, ": ")
			c.Values(func(series, x string, value float64, s *doc.Sample) {
				write("chart", title, series, strings.TrimSpace(c.X+" "+x), c.Y, stats.Exact(value),
					known(s.Low), known(s.High), strconv.Itoa(max(1, s.N)), strings.Join(s.Doubts(), ", "), f.Name)
			})
		}
	}
	for _, f := range d.Files {
		write("file", f.Name, "", "", "", f.Text)
	}
	return out.Flush()
}

func csvTable(write func(...string), t *doc.Table) {
	title := t.Title
	if t.Note != "" {
		write("note", title, "", "", "", t.Note)
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		for _, c := range t.Shown() {
			text := r.At(c)
			if c < len(r.Cells) && r.Cells[c].Value != nil {
				text = stats.Exact(*r.Cells[c].Value)
			}
			write("table", title, strconv.Itoa(i+1), t.Columns[c].Name, t.Columns[c].Unit, text)
		}
	}
	for _, text := range t.Legend {
		write("legend", title, "", "", "", text)
	}
}

func known(v *float64) string {
	if v == nil {
		return ""
	}
	return stats.Exact(*v)
}
