package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
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

// print prints an answer whole, but for charts and files.
func (a *App) print(d *doc.Doc, err error) error {
	if err != nil {
		return err
	}
	return printWhole(a.Stdout, d)
}

type listGPUs struct {
	Name string `arg:"" optional:"" placeholder:"NAME" complete:"cards" help:"Card, a name or a file."`
}

func (l *listGPUs) Run(app *App) error {
	if l.Name != "" {
		return app.print(answers.Card(l.Name))
	}
	return app.print(answers.Cards())
}

type listModels struct {
	Name string `arg:"" optional:"" placeholder:"NAME" complete:"models" help:"Model, a name, a config.json or a folder with one."`
}

func (l *listModels) Run(app *App) error {
	if l.Name != "" {
		return app.print(answers.Model(l.Name))
	}
	return app.print(answers.Models())
}

type listEngines struct {
	Name string `arg:"" optional:"" placeholder:"NAME" complete:"engines" help:"Engine, a name or a file."`
}

func (l *listEngines) Run(app *App) error {
	if l.Name != "" {
		return app.print(answers.Engine(l.Name))
	}
	return app.print(answers.ServingEngines())
}

type (
	listSystems     struct{}
	listSelections  struct{}
	listEvictions   struct{}
	listRouters     struct{}
	listTraces      struct{}
	listExperiments struct{}
)

func (listSystems) Run(app *App) error     { return app.print(answers.Systems(), nil) }
func (listSelections) Run(app *App) error  { return app.print(answers.Selections(), nil) }
func (listEvictions) Run(app *App) error   { return app.print(answers.Evictions(), nil) }
func (listRouters) Run(app *App) error     { return app.print(answers.Routers(), nil) }
func (listTraces) Run(app *App) error      { return app.print(answers.Traces(), nil) }
func (listExperiments) Run(app *App) error { return app.print(answers.Experiments(), nil) }

type listPrices struct {
	File string `arg:"" optional:"" placeholder:"FILE" help:"Prices of one's own, as plan.prices_file takes them."`
}

func (l *listPrices) Run(app *App) error { return app.print(answers.Prices(l.File)) }

type listPrefills struct {
	Name string `arg:"" optional:"" placeholder:"NAME" complete:"prefills" help:"One of them: its published accuracy, task by task."`
	JSON bool   `name:"json" help:"Print one JSON array, an object a row of the published tables, and nothing else."`
}

func (l *listPrefills) Run(app *App) error {
	all := papers.PrefillAccuracy()
	if l.Name != "" {
		if names := config.PrefillAttentions(); !slices.Contains(names, l.Name) {
			return fmt.Errorf("no prefill attention %q; there are %s%s",
				l.Name, strings.Join(names, ", "), config.DidYouMean(l.Name, names))
		}
		all = slices.DeleteFunc(all, func(s papers.Scores) bool { return s.Prefill != l.Name })
	}
	switch {
	case l.JSON:
		return printJSON(app, all)
	case l.Name != "":
		return app.print(answers.Prefill(l.Name, all), nil)
	}
	return app.print(answers.Prefills(all), nil)
}
