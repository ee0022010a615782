package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/traces"
)

type listCmd struct {
	GPUs        listGPUs        `cmd:"" name:"gpus" help:"Cards, for the key gpu; with NAME, a card's figures and where they come from."`
	Engines     listEngines     `cmd:"" help:"Serving engines, for the key system.engine; with NAME, an engine's figures and where they come from."`
	Models      listModels      `cmd:"" help:"Models, for the key model; with NAME, all that is known of a model."`
	Systems     listSystems     `cmd:"" help:"Serving systems, for the key system.preset."`
	Evictions   listEvictions   `cmd:"" help:"Eviction policies of the KV cache, for the key system.eviction."`
	Selections  listSelections  `cmd:"" help:"Selection algorithms of sparse attention, for the key system.selection."`
	Prefills    listPrefills    `cmd:"" help:"What prompts attend to in prefill, for the key system.prefill_attention, with published accuracy."`
	Routers     listRouters     `cmd:"" help:"Routers of a fleet, for the key fleet.router."`
	Prices      listPrices      `cmd:"" help:"Prices of GPUs, for the keys plan.prices and plan.prices_file: whose, of what date, from where."`
	Traces      listTraces      `cmd:"" help:"Traces and trace formats, for the keys workload.trace and workload.format."`
	Experiments listExperiments `cmd:"" help:"Experiments that commands run by name."`
	Keys        listKeys        `cmd:"" help:"Keys of a configuration: type, unit, default, permitted values and meaning."`
}

type listGPUs struct {
	Name string `arg:"" optional:"" placeholder:"NAME" help:"Card, a name or a file."`
}

func (l *listGPUs) Run(app *App) error {
	if l.Name != "" {
		return listCard(app.Stdout, l.Name)
	}
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"gpu", "FP16 TFLOP/s", "HBM GiB", "HBM GB/s", "H2D GB/s", "D2H GB/s",
		"kernels of vLLM", ""})
	for _, name := range hw.CardNames() {
		p, err := hw.LoadCard(name)
		if err != nil {
			return err
		}
		k, derived, err := p.KernelsOf("fa3", name)
		if err != nil {
			return err
		}
		t.AppendRow(table.Row{name,
			digits(p.GPU.PeakFP16.SI() / 1e12), digits(p.GPU.HBMSize.SI() / (1 << 30)),
			digits(p.GPU.HBMBandwidth.SI() / 1e9), digits(p.Link.H2D.SI() / 1e9),
			digits(p.Link.D2H.SI() / 1e9), answers.OriginOf(k, derived),
			p.Title})
	}
	t.SetColumnConfigs(rightAligned(2, 6))
	t.Render()
	return nil
}

type listModels struct {
	Name string `arg:"" optional:"" placeholder:"NAME" help:"Model, a name, a config.json or a folder with one."`
}

func (l *listModels) Run(app *App) error {
	if l.Name != "" {
		return listModel(app.Stdout, l.Name)
	}
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"model", "layers", "hidden", "Q/KV heads", "head dim", "weights GiB",
		"KV KiB/token", "context tokens"})
	for _, name := range hw.ModelNames() {
		m, err := hw.LoadModel(name)
		if err != nil {
			return err
		}
		t.AppendRow(table.Row{name, m.Layers, m.Hidden,
			fmt.Sprintf("%d/%d", m.QHeads, m.KVHeads), m.HeadDim,
			digits(float64(m.WeightBytes()) / (1 << 30)), digits(float64(m.KVBytesPerToken()) / (1 << 10)),
			strconv.Itoa(m.MaxContext)})
	}
	t.SetColumnConfigs(rightAligned(2, 8))
	t.Render()
	return nil
}

type listSystems struct{}

func (listSystems) Run(app *App) error {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"system", "engine", "attention", "offload", "load/save", "batch control",
		"prefill", ""})
	for _, p := range config.Presets() {
		s := p.Spec
		engines := "-"
		if s.Offload {
			engines = s.LoadEngine + "/" + s.SaveEngine
		}
		attention := s.Attention
		if s.Sparse() {
			attention = s.Selection
		}
		prefill := s.Prefill
		if s.SparsePrefill() {
			prefill += ", " + s.PrefillAttention
		}
		t.AppendRow(table.Row{p.Name, s.Engine, attention, yesNo(s.Offload), engines,
			yesNo(s.BatchControl), prefill, p.About})
	}
	t.Render()
	return nil
}

type listSelections struct{}

func (listSelections) Run(app *App) error {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"system.selection", "criticality from", "size", ""})
	for _, p := range dsa.Algorithms {
		digest, size := string(p.Digest), "by the scores"
		switch {
		case p.Fixed:
			size = "system.budget_tokens"
		case !p.Make(&dsa.Options{}).Weighs():
			digest, size = "-", "-"
		}
		t.AppendRow(table.Row{p.Name, digest, size, p.What})
	}
	t.Render()
	return nil
}

type listEvictions struct{}

func (listEvictions) Run(app *App) error {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"system.eviction", "evicts, of the blocks that are not in use,"})
	for _, e := range kv.Evictions() {
		t.AppendRow(table.Row{e.Name, e.About})
	}
	t.Render()
	return nil
}

type listRouters struct{}

func (listRouters) Run(app *App) error {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"fleet.router", "a request goes to"})
	for _, r := range sim.Routers() {
		t.AppendRow(table.Row{r.Name, r.About})
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, WidthMax: 80, WidthMaxEnforcer: text.WrapSoft}})
	t.Render()
	return nil
}

type listTraces struct{}

func (listTraces) Run(app *App) error {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"workload.trace", "workload.format", ""})
	t.AppendRow(table.Row{traces.BuiltIn, "", "built-in LongBench mix; by default of " +
		strings.Join(traces.DefaultSpec().Datasets, ", ")})
	t.AppendRow(table.Row{traces.Synthetic, "", "lengths drawn from workload.prompt_lengths and " +
		"workload.output_lengths: " + traces.LengthForms()})
	t.AppendRow(table.Row{traces.Sessions, "", "sessions with turns: workload.turns, " +
		"system_prompts, system_lengths, system_zipf, prompt_lengths, output_lengths and think_s"})
	t.AppendSeparator()
	for _, f := range traces.Formats() {
		t.AppendRow(table.Row{"a path", f.Name, f.About})
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, WidthMax: 72, WidthMaxEnforcer: text.WrapSoft}})
	t.Render()
	return nil
}

type listExperiments struct{}

func (listExperiments) Run(app *App) error {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"experiment", "run by", ""})
	for _, e := range experiments.BuiltIn() {
		t.AppendRow(table.Row{e.Name, e.Usage(), e.About()})
	}
	t.Render()
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// rightAligned aligns columns first to last, counted from 1, to the right.
func rightAligned(first, last int) []table.ColumnConfig {
	var configs []table.ColumnConfig
	for n := first; n <= last; n++ {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	return configs
}
