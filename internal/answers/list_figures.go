package answers

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// figuresTable lists figures with their units and sources.
func figuresTable(figures []hw.NamedFigure) doc.Table {
	t := doc.Table{Title: "Figures", Columns: doc.Columns("figure", ">value", "unit", "from",
		"source")}
	for _, f := range figures {
		t.Add(f.Key, doc.As(f.Value, number(f.Value)), f.Unit, f.From, f.Source)
	}
	return t
}

// Card lists a card's figures, and the kernels of each library on the card.
func Card(name string) (*doc.Doc, error) {
	c, err := hw.LoadCard(name)
	if err != nil {
		return nil, err
	}
	kernels := doc.Table{Title: "Kernels, by the library that an engine names",
		Columns: doc.Columns("library", "kernels", "from", "")}
	for _, library := range hw.Libraries {
		k, derived, err := c.KernelsOf(library, name)
		if err != nil {
			kernels.Add(library, "-", "-", err.Error())
			continue
		}
		kernels.Add(library, k.Name, OriginOf(k, derived), k.Title)
	}
	return &doc.Doc{Title: c.Name, Lead: []string{c.Name + ": " + c.Title},
		Tables: []doc.Table{figuresTable(c.Figures()), kernels}}, nil
}

// Model lists the shape of a model, and its sizes in bytes.
func Model(name string) (*doc.Doc, error) {
	m, err := hw.LoadModel(name)
	if err != nil {
		return nil, err
	}
	t := keysTable("Shape", &m)
	t.Rule()
	for _, r := range []struct {
		title, unit string
		bytes       int64
		each        float64
	}{
		{"weights", "GiB", m.WeightBytes(), 1 << 30},
		{"weights of a layer", "MiB", m.LayerWeightBytes(), 1 << 20},
		{"KV of a token", "KiB", m.KVBytesPerToken(), 1 << 10},
		{"KV of max_context", "GiB", m.KVBytesPerToken() * int64(m.MaxContext), 1 << 30},
	} {
		t.Add(r.title, float64(r.bytes)/r.each, r.unit)
	}
	return &doc.Doc{Title: m.Name, Lead: []string{m.Name + ": " + m.Source}, Tables: []doc.Table{t},
		Answers: where([]string{m.Note}, func(note *string) bool { return *note != "" })}, nil
}

// Engine lists an engine's figures, defaults, and batch limits by card and use.
func Engine(name string) (*doc.Doc, error) {
	e, err := hw.LoadEngine(name)
	if err != nil {
		return nil, err
	}
	d := &doc.Doc{Title: e.Name, Lead: []string{e.Name + ": " + e.Title},
		Tables: []doc.Table{figuresTable(e.Figures()), keysTable("Defaults", e)}}
	batch := doc.Table{Title: "Batch limits, the first rule that fits", Columns: doc.Columns("use",
		">card|GiB at least", "card is no", ">tokens", ">requests")}
	for _, r := range e.Batch {
		batch.Add(r.Use, known(r.MinHBMGiB), r.Not, r.MaxTokens, r.MaxRequests)
	}
	addTable(d, batch)
	return d, nil
}

// keysTable lists the keys of a description that are set.
func keysTable(title string, of any) doc.Table {
	t := doc.Table{Title: title, Columns: doc.Columns("key", ">value", "unit")}
	for _, f := range config.FieldsOf(of) {
		if f.Value.IsZero() || slices.Contains([]string{"name", "title", "source", "note"}, f.Key) {
			continue
		}
		switch v := f.Value.Interface().(type) {
		case int, string:
			t.Add(f.Key, v, f.Tag.Get("unit"))
		case float64:
			t.Add(f.Key, doc.As(v, number(v)), f.Tag.Get("unit"))
		case bool:
			t.Add(f.Key, yesNo(v), "")
		case []int:
			t.Add(f.Key, fmt.Sprintf("%d, to %d", len(v), v[len(v)-1]), "")
		}
	}
	return t
}
