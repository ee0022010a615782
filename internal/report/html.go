package report

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// markup is HTML that is being written.
type markup struct{ strings.Builder }

// put writes a format of HTML with texts of results, of which none is read as HTML.
func (m *markup) put(format string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, t := range texts {
		escaped[i] = html.EscapeString(t)
	}
	fmt.Fprintf(m, format, escaped...)
}

// body writes all that a report shows, in its order.
func (m *markup) body(p *page) {
	m.put("<header>\n<h1>%s</h1>\n", p.Title)
	for _, text := range p.Lead {
		m.put("<p>%s</p>\n", text)
	}
	m.put("</header>\n")
	m.warnings(p.Warnings)
	m.notes(p.Notes)
	if len(p.Answers) > 0 {
		m.put("<section class=\"answers\">\n<h2>Answers</h2>\n<ul>")
		for _, text := range p.Answers {
			m.put("\n<li>%s</li>", text)
		}
		m.put("\n</ul>\n</section>\n")
	}
	for i := range p.Sections {
		m.section(&p.Sections[i])
	}
	for i := range p.Tables {
		m.titled(&p.Tables[i])
	}
	m.appendix(p)
}

func (m *markup) warnings(all []warning) {
	if len(all) == 0 {
		return
	}
	m.put("<section class=\"warnings\" aria-label=\"Warnings\">\n<h2>Read with care</h2>\n")
	m.list(all)
	m.put("</section>\n")
}

func (m *markup) notes(all []warning) {
	if len(all) == 0 {
		return
	}
	m.put("<details class=\"notes\"><summary>%s</summary>\n", warn.NotesTitle(len(all)))
	m.list(all)
	m.put("</details>\n")
}

func (m *markup) list(all []warning) {
	m.put("<ul>")
	for _, w := range all {
		m.put("\n<li>%s", w.Text)
		if w.Of != "" {
			m.put(" <span class=\"of\">%s</span>", w.Of)
		}
		m.put("</li>")
	}
	m.put("\n</ul>\n")
}

func (m *markup) heading(title, note string) {
	m.put("<section>\n<h2>%s</h2>\n", title)
	if note != "" {
		m.put("<p class=\"note\">%s</p>\n", note)
	}
}

func (m *markup) section(s *section) {
	m.heading(s.Title, s.Note)
	m.put("<div class=\"charts\">")
	for _, c := range s.Charts {
		m.put("\n<figure>\n<figcaption>")
		if c.Title != "" {
			m.put("<b>%s</b> ", c.Title)
		}
		m.put("<span>%s</span></figcaption>\n<div class=\"chart\" id=\"%s\"></div>\n</figure>", c.Y, c.ID)
	}
	m.put("\n</div>\n</section>\n")
}

// titled writes a table under its title.
func (m *markup) titled(t *table) {
	m.heading(t.Title, t.Note)
	if t.Folded {
		m.put("<details><summary>%s rows</summary>", strconv.Itoa(len(t.Rows)))
	}
	m.table(t)
	if t.Folded {
		m.put("</details>")
	}
	m.put("\n</section>\n")
}

func (m *markup) table(t *table) {
	row := func(element string, cells []string) {
		m.put("<tr>")
		for i, text := range cells {
			class := ""
			if i >= t.Right {
				class = " class=\"n\""
			}
			m.put("<"+element+class+">%s</"+element+">", text)
		}
		m.put("</tr>")
	}
	m.put("<div class=\"scroll\"><table>\n<thead>")
	row("th", t.Header)
	m.put("</thead>\n<tbody>")
	for _, cells := range t.Rows {
		m.put("\n")
		row("td", cells)
	}
	m.put("\n</tbody></table></div>")
}

// appendix writes what the numbers rest on, and the configuration.
func (m *markup) appendix(p *page) {
	if len(p.Rests) > 0 {
		m.put("<section>\n<h2>What the numbers rest on</h2>\n")
		for i := range p.Rests {
			m.put("<details><summary>%s</summary>\n<p class=\"note\">%s</p>\n", p.Rests[i].Title,
				p.Rests[i].Note)
			m.table(&p.Rests[i].Table)
			m.put("</details>\n")
		}
		m.put("</section>\n")
	}
	if len(p.Files) > 0 {
		m.put("<section>\n<h2>Configuration</h2>\n")
		for _, f := range p.Files {
			m.put("<details><summary>%s</summary><pre>%s</pre></details>\n", f.Name, f.Text)
		}
		m.put("</section>\n")
	}
}
