package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

type planCmd struct {
	configArg
	planFlags
	searchFlags
}

// Run implements the command.
func (p *planCmd) Run(ctx context.Context, app *App) (err error) {
	q := &question{command: "plan", unit: "candidates", file: p.Config,
		sets: append(p.sets(), p.Set...)}
	if q.cards, err = p.cards(); err != nil {
		return err
	}
	if p.Config == "" {
		q.folder = p.name(slices.Clone(q.cards)) + settingsName(p.Set)
		if q.sets, err = p.alone(p.Set); err != nil {
			return err
		}
	}
	if err := q.load(config.Until(ctx)); err != nil {
		return err
	}
	if q.Plan == nil {
		return fmt.Errorf("plan %s: there is no table [plan]; --set plan.prices=mid adds one, and "+
			"sparseserve goodput %[1]s finds the largest rate", p.Config)
	}
	offers, err := capacity.OffersOf(q.Sweep)
	if err != nil {
		return err
	}
	q.candidates = offers.Points()
	return p.search(ctx, app, q, func(planner *capacity.Planner) (*answer, []string, error) {
		bought, notes, err := planner.Purchase(ctx, offers)
		return &answer{bought, func(name string) *doc.Doc { return answers.Purchase(name, bought) },
			bought.Files}, notes, err
	})
}
