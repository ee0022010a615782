package answers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/traces"
)

// listed returns a document with one table.
func listed(title string, t doc.Table, remarks ...string) (*doc.Doc, error) {
	return &doc.Doc{Title: title, Tables: []doc.Table{t}, Answers: remarks}, nil
}

// Cards lists the built-in cards.
func Cards() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("gpu", ">FP16|TFLOP/s", ">HBM|GiB", ">HBM|GB/s", ">H2D|GB/s",
		">D2H|GB/s", "kernels of vLLM", "")}
	for _, name := range hw.CardNames() {
		c, err := hw.LoadCard(name)
		if err != nil {
			return nil, err
		}
		k, derived, err := c.KernelsOf("fa3", name)
		if err != nil {
			return nil, err
		}
		t.Add(name, c.GPU.PeakFP16.SI()/1e12, c.GPU.HBMSize.SI()/(1<<30), c.GPU.HBMBandwidth.SI()/1e9,
			c.Link.H2D.SI()/1e9, c.Link.D2H.SI()/1e9, OriginOf(k, derived), c.Title)
	}
	return listed("Cards", t)
}

// Models lists the built-in models.
func Models() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("model", ">layers", ">hidden", ">heads|Q/KV", ">head dim",
		">weights|GiB", ">KV|KiB/token", ">context|tokens")}
	for _, name := range llm.Names() {
		m, err := llm.Load(name)
		if err != nil {
			return nil, err
		}
		t.Add(name, m.Layers, m.Hidden, fmt.Sprintf("%d/%d", m.QHeads, m.KVHeads), m.HeadDim,
			float64(m.WeightBytes())/(1<<30), float64(m.KVBytesPerToken())/(1<<10), m.MaxContext)
	}
	return listed("Models", t)
}

// ServingEngines lists the built-in serving engines.
func ServingEngines() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("engine", "kernels", "plans ahead", ">graphs|to tokens",
		"scheduler", ">tokens", ">requests", "")}
	for _, name := range hw.EngineNames() {
		e, err := hw.LoadEngine(name)
		if err != nil {
			return nil, err
		}
		graphs := doc.None()
		if n := len(e.Graphs.Tokens); n > 0 {
			graphs = doc.Count(e.Graphs.Tokens[n-1])
		}
		d := &e.Defaults
		t.Add(name, e.Kernels, yesNo(e.PlanAhead), graphs, d.Scheduler, d.MaxTokens, d.MaxRequests,
			e.Title)
	}
	return listed("Serving engines", t)
}

// Systems lists the presets.
func Systems() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("system", "engine", "attention", "offload", "load/save",
		"batch control", "prefill", "")}
	for _, p := range config.Presets() {
		s := p.Spec
		engines := "-"
		if s.Offload.On {
			engines = s.Offload.Load + "/" + s.Offload.Save
		}
		attention := dsa.FullName
		if s.Sparse() {
			attention = s.Selection.Policy
		}
		prefill := s.Prefill.Split
		if s.SparsePrefill() {
			prefill += ", " + s.Prefill.Attention
		}
		t.Add(p.Name, s.Engine, attention, yesNo(s.Offload.On), engines, yesNo(s.Offload.BatchControl),
			prefill, p.About)
	}
	return listed("Systems", t)
}

// Selections lists the selection algorithms.
func Selections() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("selection.policy", "criticality from", "size", "")}
	for _, p := range dsa.Algorithms {
		digest, size := string(p.Digest), "by the scores"
		switch {
		case p.Fixed:
			size = "selection.budget_tokens"
		case !p.Make(&dsa.Options{}).Weighs():
			digest, size = "-", "-"
		}
		t.Add(p.Name, digest, size, p.What)
	}
	return listed("Selection algorithms", t)
}

// Evictions lists the eviction policies.
func Evictions() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("offload.eviction",
		"evicts, of the blocks that are not in use,")}
	for _, e := range kv.Evictions() {
		t.Add(e.Name, e.About)
	}
	return listed("Eviction policies", t)
}

// Routers lists the routers of fleets.
func Routers() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("fleet.router", "a request goes to")}
	for _, r := range fleet.Routers() {
		t.Add(r.Name, r.About)
	}
	return listed("Routers", t)
}

// Traces lists the built-in traces and the formats of files.
func Traces() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("workload.trace", "workload.format", "")}
	t.Add(traces.BuiltIn, "", "built-in LongBench mix; by default of "+
		strings.Join(traces.DefaultSpec().Datasets, ", "))
	t.Add(traces.Synthetic, "", "lengths drawn from workload.prompt_lengths and "+
		"workload.output_lengths: "+traces.LengthForms())
	t.Add(traces.Sessions, "", "sessions with turns: sessions.turns, system_prompts, system_lengths, "+
		"system_zipf, prompt_lengths, output_lengths and think_s")
	t.Rule()
	said := ""
	for _, f := range traces.Formats() {
		if f.Name != said { // two shapes may have one name
			t.Add("a path", f.Name, f.About)
		}
		said = f.Name
	}
	return listed("Traces", t)
}

// Experiments lists the built-in experiments.
func Experiments() (*doc.Doc, error) {
	t := doc.Table{Columns: doc.Columns("experiment", "run by", "")}
	for _, e := range experiments.BuiltIn() {
		t.Add(e.Name, e.Usage(), e.About())
	}
	return listed("Experiments", t)
}

// Prices lists prices of GPUs. file is the user's own price file, or "".
func Prices(file string) (*doc.Doc, error) {
	prices, err := capacity.LoadPrices(file)
	if err != nil {
		return nil, err
	}
	gpus := distinct(prices.Rows, func(r *capacity.Price) string { return r.GPU })
	slices.Sort(gpus)
	t := doc.Table{Columns: doc.Columns("plan.prices", "gpu", ">price|$/hour", "what", "date",
		"source")}
	for _, name := range prices.Names() {
		t.Rule()
		for _, gpu := range gpus {
			if r, err := prices.Of(name, gpu); err == nil {
				what, source := r.Offer, r.Source
				if name != r.Provider {
					what, source = "that of "+r.Provider, ""
				}
				t.Add(name, gpu, doc.Fixed(r.USDPerHour, "%.2f"), what, r.Date, source)
			}
		}
	}
	return listed("Prices of GPUs", t, "low, mid and high: the lowest, the middle and the highest of "+
		"all providers, card by card.", "Prices of your own: a file of [[price]] tables, each with "+
		"provider, gpu, usd_per_hour, offer, date and source, named by plan.prices_file; plan.prices is "+
		"then one of its providers, or low, mid or high.")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// figuresTable lists figures with their units and sources.
func figuresTable(figures []hw.NamedFigure) doc.Table {
	t := doc.Table{Title: "Figures", Columns: doc.Columns("figure", ">value", "unit", "from",
		"source")}
	for _, f := range figures {
		t.Add(f.Key, doc.As(f.Value, stats.Exact(f.Value)), f.Unit, f.From, f.Source)
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
	m, err := llm.Load(name)
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
			t.Add(f.Key, doc.As(v, stats.Exact(v)), f.Tag.Get("unit"))
		case bool:
			t.Add(f.Key, yesNo(v), "")
		case []int:
			t.Add(f.Key, fmt.Sprintf("%d, to %d", len(v), v[len(v)-1]), "")
		}
	}
	return t
}
