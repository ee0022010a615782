package show

import (
	"cmp"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

//go:embed page.html page.css page.js echarts/echarts.common.min.js.gz
var assets embed.FS

// page is what page.html shows of a document.
type page struct {
	*doc.Doc
	Urgent, Notes   []doc.Warning
	Groups          []group
	Charts          []*doc.Chart
	CSS             template.CSS
	Library, Script template.JS
}

// NotesTitle counts the notes.
func (p *page) NotesTitle() string { return warn.NotesTitle(len(p.Notes)) }

// group is tables under one heading.
type group struct {
	Heading string
	Tables  []*htmlTable
}

// htmlTable is a table with the columns that say something.
type htmlTable struct {
	*doc.Table
	Heads []doc.Column
	Cells [][]htmlCell
}

type htmlCell struct {
	Text   string
	Number bool
}

// Summary is the line that a folded table opens by.
func (t *htmlTable) Summary() string {
	if t.Under == "" {
		return strconv.Itoa(len(t.Rows)) + " rows"
	}
	return t.Title
}

// HTML writes a document as one file that needs no network. The same document gives the same bytes.
func HTML(w io.Writer, d *doc.Doc) error {
	p := page{Doc: d, Charts: []*doc.Chart{}, Groups: groups(d.Tables)}
	for _, warning := range d.Warnings {
		if warning.Note {
			p.Notes = append(p.Notes, warning)
		} else {
			p.Urgent = append(p.Urgent, warning)
		}
	}
	for _, f := range d.Figures {
		for _, c := range f.Charts {
			p.Charts = append(p.Charts, c)
			c.ID = fmt.Sprintf("chart-%d", len(p.Charts))
			c.Kind = cmp.Or(c.Kind, doc.Lines)
		}
	}
	for _, a := range []struct {
		file string
		into func(text string)
	}{
		{"page.css", func(text string) { p.CSS = template.CSS(text) }},
		{"page.js", func(text string) { p.Script = template.JS(text) }},
		{"echarts/echarts.common.min.js.gz", func(text string) { p.Library = template.JS(text) }},
	} {
		text, err := asset(a.file)
		if err != nil {
			return err
		}
		a.into(text)
	}
	skeleton, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return err
	}
	return skeleton.Execute(w, &p)
}

// asset reads a file of the page, unpacked.
func asset(name string) (string, error) {
	f, err := assets.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var r io.Reader = f
	if name[len(name)-3:] == ".gz" {
		if r, err = gzip.NewReader(f); err != nil {
			return "", err
		}
	}
	text, err := files.ReadAll(name, r)
	return string(text), err
}

// groups puts tables next to each other that share a heading under it.
func groups(tables []doc.Table) (all []group) {
	for i := range tables {
		t := &tables[i]
		heading := t.Under
		if heading == "" {
			heading = t.Title
		}
		if n := len(all); n == 0 || t.Under == "" || all[n-1].Heading != heading {
			all = append(all, group{Heading: heading})
		}
		g := &all[len(all)-1]
		g.Tables = append(g.Tables, htmlOf(t))
	}
	return all
}

func htmlOf(t *doc.Table) *htmlTable {
	out := &htmlTable{Table: t}
	shown := t.Shown()
	for _, i := range shown {
		out.Heads = append(out.Heads, t.Columns[i])
	}
	for _, r := range t.Rows {
		var cells []htmlCell
		for _, i := range shown {
			cells = append(cells, htmlCell{r.At(i), t.Columns[i].Number})
		}
		out.Cells = append(out.Cells, cells)
	}
	return out
}
