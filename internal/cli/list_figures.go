package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/answers"
)

type listEngines struct {
	Name string `arg:"" optional:"" placeholder:"NAME" help:"Engine, a name or a file."`
}

// Run implements the command.
func (l *listEngines) Run(app *App) error {
	if l.Name != "" {
		return listEngine(app.Stdout, l.Name)
	}
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"engine", "kernels", "plans ahead", "graphs to", "scheduler", "tokens",
		"requests", ""})
	for _, name := range hw.EngineNames() {
		e, err := hw.LoadEngine(name)
		if err != nil {
			return err
		}
		graphs := "-"
		if n := len(e.Graphs.Tokens); n > 0 {
			graphs = strconv.Itoa(e.Graphs.Tokens[n-1])
		}
		d := &e.Defaults
		t.AppendRow(table.Row{name, e.Kernels, yesNo(e.PlanAhead), graphs, d.Base, d.MaxTokens,
			d.MaxRequests, e.Title})
	}
	t.SetColumnConfigs(append(rightAligned(6, 7),
		table.ColumnConfig{Number: 4, Align: text.AlignRight}))
	t.Render()
	return nil
}

// listCard prints a card's figures, and for each library the kernels that it runs there.
func listCard(w io.Writer, name string) error {
	c, err := hw.LoadCard(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n\n", inCell(c.Name), inCell(c.Title))
	printFigures(w, c.Figures())
	fmt.Fprintln(w, "\nKernels, by the library that an engine names:")
	for _, library := range hw.Libraries {
		k, derived, err := c.KernelsOf(library, name)
		if err != nil {
			fmt.Fprintf(w, "  %-12s %v\n", library, err)
			continue
		}
		fmt.Fprintf(w, "  %-12s %s (%s): %s\n", library, inCell(k.Name),
			answers.OriginOf(k, derived), inCell(k.Title))
	}
	return nil
}

// listModel prints the shape of a model, and what it comes to in bytes and FLOPs.
func listModel(w io.Writer, name string) error {
	m, err := hw.LoadModel(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n\n", inCell(m.Name), inCell(m.Source))
	t := newTable(w)
	t.AppendHeader(table.Row{"figure", "value", "unit"})
	for _, f := range config.FieldsOf(&m) {
		if f.Value.IsZero() && strings.HasSuffix(f.Tag.Get("toml"), ",omitempty") {
			continue
		}
		switch v := f.Value.Interface().(type) {
		case int:
			t.AppendRow(table.Row{f.Key, v, f.Tag.Get("unit")})
		case float64:
			t.AppendRow(table.Row{f.Key, v, ""})
		case bool:
			t.AppendRow(table.Row{f.Key, yesNo(v), ""})
		case string:
			if f.Key != "name" && f.Key != "source" {
				t.AppendRow(table.Row{f.Key, v, ""})
			}
		}
	}
	t.AppendSeparator()
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
		t.AppendRow(table.Row{r.title, digits(float64(r.bytes) / r.each), r.unit})
	}
	t.SetColumnConfigs(rightAligned(2, 2))
	t.Render()
	if m.Note != "" {
		fmt.Fprintln(w, inCell(m.Note))
	}
	return nil
}

// listEngine prints an engine's defaults and figures.
func listEngine(w io.Writer, name string) error {
	e, err := hw.LoadEngine(name)
	if err != nil {
		return err
	}
	d := &e.Defaults
	fmt.Fprintf(w, "%s: %s\n\nKernels: %s. Plans ahead: %s.\n", inCell(e.Name), inCell(e.Title),
		inCell(e.Kernels),
		yesNo(e.PlanAhead))
	fmt.Fprintf(w, "Defaults: base = %q, utilisation = %g, block_tokens = %d, chunk_tokens = %d, "+
		"max_tokens = %d, max_requests = %d, watermark = %g, sampling = %q, prefix_cache = %q, "+
		"over_length = %q.\n",
		d.Base, d.Utilisation, d.BlockTokens, d.ChunkTokens, d.MaxTokens, d.MaxRequests, d.Watermark,
		d.Sampling, d.PrefixCache, d.OverLength)
	for i := range e.Batch {
		r := &e.Batch[i]
		cards := "any other card"
		if r.MinHBMGiB > 0 {
			cards = fmt.Sprintf("a card of %g GiB or more", r.MinHBMGiB)
		}
		if r.Not != "" {
			cards += " that is no " + strings.ToUpper(r.Not)
		}
		fmt.Fprintf(w, "With use = %q on %s: max_tokens = chunk_tokens = %d, max_requests = %d.\n",
			r.Use, cards, r.MaxTokens, r.MaxRequests)
	}
	if n := len(e.Graphs.Tokens); n > 0 {
		fmt.Fprintf(w, "CUDA graphs: %d sizes to %d tokens (%s).\n", n, e.Graphs.Tokens[n-1],
			e.Graphs.Source)
	}
	if g := e.LinearGrid; g > 1 {
		faster := ""
		if e.LinearFaster {
			faster = ", or the one after that where it takes less time"
		}
		fmt.Fprintf(w, "Linears of more than %d tokens: padded to a multiple of it%s.\n", g, faster)
	}
	if e.LoadsInTurn {
		fmt.Fprintln(w, "A chunk's prefix loads as other blocks of its layer do, not while the layer "+
			"before computes.")
	}
	fmt.Fprintln(w)
	printFigures(w, e.Figures())
	return nil
}

// printFigures prints figures with their units and sources.
func printFigures(w io.Writer, figures []hw.NamedFigure) {
	t := newTable(w)
	t.AppendHeader(table.Row{"figure", "value", "unit", "from", "source"})
	for _, f := range figures {
		t.AppendRow(table.Row{f.Key, strconv.FormatFloat(f.Value, 'g', -1, 64), f.Unit, f.From, f.Source})
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight},
		{Number: 5, WidthMax: 80, WidthMaxEnforcer: text.WrapSoft}})
	t.Render()
}
