package report

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/files"
)

//go:embed page.html page.css page.js echarts/echarts.common.min.js.gz
var assets embed.FS

// page is what a report shows, in this order.
type page struct {
	Title    string
	Lead     []string // what was run, a sentence each
	Warnings []warning
	Notes    []warning // shown on demand
	Answers  []string  // in words
	Sections []section
	Tables   []table
	Rests    []rest
	Files    []document
}

// warning is what the results must be read with, and which of them.
type warning struct{ Text, Of string }

// section is some charts under one caption.
type section struct {
	Title, Note string
	Charts      []*chart
}

// chart is what page.js draws in the element of its id.
type chart struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // lines, bars, effects, heat
	figures.Chart
	Effects []effect `json:"effects,omitempty"`
	Heat    *heat    `json:"heat,omitempty"`
}

// table has numbers to the right from its column Right on.
type table struct {
	Title, Note string
	Header      []string
	Rows        [][]string
	Right       int
	Folded      bool // shown on demand
}

// rest is a set of figures that results rest on.
type rest struct {
	Title, Note string
	Table       table
	Set         bool // some by the configuration
}

// document is a file of the folder.
type document struct{ Name, Text string }

// Write writes the report of a result folder, a page that replaces nothing but pages. Nothing is
// there of one that fails.
func Write(path, folder string) error {
	if filepath.Ext(path) != ".html" {
		return fmt.Errorf("%s: want a name that ends in .html", path)
	}
	text, err := Make(folder)
	if err != nil {
		return err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	var kept []string
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(file) != ".html" {
			kept = append(kept, file)
		}
		return err
	})
	if err != nil {
		return err
	}
	return files.Write(path, text, kept...)
}

// Make returns the report of a result folder.
func Make(folder string) ([]byte, error) {
	p, err := read(folder)
	if err != nil {
		return nil, err
	}
	return p.render()
}

func (p *page) render() ([]byte, error) {
	var charts []*chart
	for i := range p.Sections {
		for _, c := range p.Sections[i].Charts {
			c.ID = fmt.Sprintf("chart-%d", len(charts)+1)
			charts = append(charts, c)
		}
	}
	css, err := assets.ReadFile("page.css")
	if err != nil {
		return nil, err
	}
	script, err := assets.ReadFile("page.js")
	if err != nil {
		return nil, err
	}
	library, err := unpacked("echarts/echarts.common.min.js.gz")
	if err != nil {
		return nil, err
	}
	skeleton, err := assets.ReadFile("page.html")
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(charts) // in which "<" is \u003c: no text of it ends the element
	if err != nil {
		return nil, err
	}
	var body markup
	body.body(p)
	return []byte(strings.NewReplacer("{{title}}", html.EscapeString(p.Title), "{{css}}", string(css),
		"{{body}}", body.String(), "{{charts}}", string(data), "{{library}}", string(library),
		"{{script}}", string(script)).Replace(string(skeleton))), nil
}

func unpacked(name string) ([]byte, error) {
	packed, err := assets.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return files.ReadAll(name, r)
}
