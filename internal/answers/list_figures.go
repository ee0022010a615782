package answers

import (
	"fmt"
	"strings"

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
	t := doc.Table{Columns: doc.Columns("figure", ">value", "unit")}
	for _, f := range config.FieldsOf(&m) {
		if f.Value.IsZero() && strings.HasSuffix(f.Tag.Get("toml"), ",omitempty") {
			continue
		}
		switch v := f.Value.Interface().(type) {
		case int:
			t.Add(f.Key, v, f.Tag.Get("unit"))
		case float64:
			t.Add(f.Key, doc.As(v, number(v)), "")
		case bool:
			t.Add(f.Key, yesNo(v), "")
		case string:
			if f.Key != "name" && f.Key != "source" {
				t.Add(f.Key, v, "")
			}
		}
	}
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
	d := listed(m.Name, t)
	d.Lead = []string{m.Name + ": " + m.Source}
	if m.Note != "" {
		d.Answers = []string{m.Note}
	}
	return d, nil
}

// Engine lists an engine's defaults and figures.
func Engine(name string) (*doc.Doc, error) {
	e, err := hw.LoadEngine(name)
	if err != nil {
		return nil, err
	}
	d := &e.Defaults
	lead := []string{e.Name + ": " + e.Title,
		fmt.Sprintf("Kernels: %s. Plans ahead: %s.", e.Kernels, yesNo(e.PlanAhead)),
		fmt.Sprintf("Defaults: scheduler = %q, utilisation = %g, block_tokens = %d, "+
			"prefill.chunk_tokens = %d, "+
			"max_tokens = %d, max_requests = %d, watermark = %g, sampling = %q, prefix_cache.mode = %q, "+
			"prefill.over_length = %q.", d.Scheduler, d.Utilisation, d.BlockTokens,
			d.Prefill.ChunkTokens, d.MaxTokens, d.MaxRequests, d.Watermark, d.Sampling, d.PrefixCache.Mode,
			d.Prefill.OverLength)}
	for i := range e.Batch {
		r := &e.Batch[i]
		cards := "any other card"
		if r.MinHBMGiB > 0 {
			cards = fmt.Sprintf("a card of %g GiB or more", r.MinHBMGiB)
		}
		if r.Not != "" {
			cards += " that is no " + strings.ToUpper(r.Not)
		}
		lead = append(lead, fmt.Sprintf("With use = %q on %s: max_tokens = prefill.chunk_tokens = %d, "+
			"max_requests = %d.", r.Use, cards, r.MaxTokens, r.MaxRequests))
	}
	if n := len(e.Graphs.Tokens); n > 0 {
		lead = append(lead, fmt.Sprintf("CUDA graphs: %d sizes to %d tokens (%s).", n,
			e.Graphs.Tokens[n-1], e.Graphs.Source))
	}
	if g := e.LinearGrid; g > 1 {
		faster := ""
		if e.LinearFaster {
			faster = ", or the one after that where it takes less time"
		}
		lead = append(lead, fmt.Sprintf("Linears of more than %d tokens: padded to a multiple of it%s.",
			g, faster))
	}
	if e.LoadsInTurn {
		lead = append(lead, "A chunk's prefix loads as other blocks of its layer do, not while the "+
			"layer before computes.")
	}
	return &doc.Doc{Title: e.Name, Lead: lead, Tables: []doc.Table{figuresTable(e.Figures())}}, nil
}
