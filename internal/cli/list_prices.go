package cli

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/capacity"
)

type listPrices struct {
	File string `arg:"" optional:"" placeholder:"FILE" help:"Prices of one's own, as plan.prices_file takes them."`
}

func (l *listPrices) Run(app *App) error {
	prices, err := capacity.LoadPrices(l.File)
	if err != nil {
		return err
	}
	var gpus []string
	for _, r := range prices.Rows {
		if !slices.Contains(gpus, r.GPU) {
			gpus = append(gpus, r.GPU)
		}
	}
	slices.Sort(gpus)
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"plan.prices", "gpu", "$/hour", "what", "date", "source"})
	for _, name := range prices.Names() {
		for _, gpu := range gpus {
			if r, err := prices.Of(name, gpu); err == nil {
				what, source := r.Offer, r.Source
				if name != r.Provider {
					what, source = "that of "+r.Provider, ""
				}
				t.AppendRow(table.Row{name, gpu, fmt.Sprintf("%.2f", r.USDPerHour), what, r.Date, source})
			}
		}
		t.AppendSeparator()
	}
	t.SetColumnConfigs(rightAligned(3, 3))
	t.Render()
	fmt.Fprintln(app.Stdout, `low, mid and high: the lowest, the middle and the highest of all providers, card by card.
Prices of your own: a file of [[price]] tables, each with provider, gpu, usd_per_hour, offer, date and source,
named by plan.prices_file; plan.prices is then one of its providers, or low, mid or high.`)
	return nil
}
