// Package answers builds the documents (package doc) of results: of runs (runs.go), plans,
// what-ifs, comparisons, validations and calibrations. A command passes its results from memory.
// Read loads the same from a result folder, so the terminal and a report of the folder agree.
package answers

import (
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
)

// builder builds a document.
type builder struct{ doc.Doc }

// addFile adds a file of the folder to the document, if it is there.
func (b *builder) addFile(path, name string) {
	if text, err := files.ReadResult(path); err == nil {
		b.Files = append(b.Files, doc.File{Name: name, Text: string(text)})
	}
}

// columns returns columns of words, and of numbers from index right on.
func columns(right int, names ...string) []doc.Column {
	all := make([]doc.Column, len(names))
	for i, name := range names {
		all[i] = doc.Column{Name: name, Number: i >= right}
	}
	return all
}

// row returns a row of texts.
func row(cells ...string) doc.Row { return doc.Row{Cells: doc.Texts(cells...)} }
