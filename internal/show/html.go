package show

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// The parts of the page; the library is packed.
var (
	//go:embed page.html
	skeleton string
	//go:embed page.css
	css template.CSS
	//go:embed page.js
	script template.JS
	//go:embed echarts/echarts.common.min.js.gz
	library []byte
)

// page is the data of page.html for a document.
type page struct {
	*doc.Doc
	Urgent, Notes   []warn.Warning
	NotesTitle      string
	Groups          []group
	Sections        []section
	Charts          []*doc.Chart
	CSS             template.CSS
	Library, Script template.JS
}

// group is a list of tables under one heading.
type group struct {
	Heading string
	Tables  []*doc.Table
}

// section is a list of figures with one title.
type section struct {
	Title, Caption string
	Charts         []*doc.Chart
}

// HTML writes a document as one file that needs no network. The same document gives the same bytes.
func HTML(w io.Writer, d *doc.Doc) error {
	p := page{Doc: d, Charts: []*doc.Chart{}, Groups: groups(d.Tables), Sections: sections(d)}
	for _, warning := range d.Warnings {
		if warning.Severity() == warn.Note {
			p.Notes = append(p.Notes, warning)
		} else {
			p.Urgent = append(p.Urgent, warning)
		}
	}
	p.NotesTitle = warn.NotesTitle(len(p.Notes))
	for _, s := range p.Sections {
		for _, c := range s.Charts {
			doc.Fit(c)
			p.Charts = append(p.Charts, c)
			c.ID = fmt.Sprintf("chart-%d", len(p.Charts))
		}
	}
	unpacked, err := files.Unpack(bytes.NewReader(library))
	if err != nil {
		return err
	}
	text, err := files.ReadAll("echarts", unpacked)
	if err != nil {
		return err
	}
	p.CSS, p.Script, p.Library = css, script, template.JS(text)
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"contains": strings.Contains}).Parse(skeleton)).Execute(w, &p)
}

// mostMinor is the maximum number of minor figures that are shown.
const mostMinor = 4

// sections groups consecutive figures with one title. Captions omit text that the lead contains.
func sections(d *doc.Doc) (all []section) {
	minor := 0
	for _, f := range d.Figures {
		if f.Minor {
			minor++
		}
		caption := f.Caption
		for _, lead := range d.Lead {
			caption = strings.TrimSpace(strings.TrimPrefix(caption, lead))
		}
		switch n := len(all); {
		case len(f.Charts) == 0 || f.Minor && minor > mostMinor:
		case n > 0 && all[n-1].Title == f.Title:
			all[n-1].Charts = append(all[n-1].Charts, f.Charts...)
		default:
			all = append(all, section{f.Title, caption, f.Charts})
		}
	}
	if minor > mostMinor {
		all[len(all)-1].Caption += fmt.Sprintf(" The pictures of %d more runs are files of their own.",
			minor-mostMinor)
	}
	return all
}

// groups groups adjacent tables that share a heading.
func groups(tables []doc.Table) (all []group) {
	for i := range tables {
		t := &tables[i]
		heading := cmp.Or(t.Under, t.Title)
		if n := len(all); n == 0 || t.Under == "" || all[n-1].Heading != heading {
			all = append(all, group{Heading: heading})
		}
		g := &all[len(all)-1]
		g.Tables = append(g.Tables, t)
	}
	return all
}
