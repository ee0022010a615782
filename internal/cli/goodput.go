package cli

import (
	"context"
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

type goodputCmd struct {
	configArg
	searchFlags
}

// Run implements the command.
func (g *goodputCmd) Run(ctx context.Context, app *App) error {
	q := &question{command: "goodput", unit: "runs", file: g.Config, sets: g.Set}
	if err := q.load(config.Until(ctx)); err != nil {
		return err
	}
	if q.Plan != nil {
		return fmt.Errorf("goodput %s: the table [plan] asks what to buy: sparseserve plan %[1]s",
			g.Config)
	}
	candidates, err := capacity.Candidates(q.Sweep)
	if err != nil {
		return err
	}
	for i := range candidates {
		q.candidates = append(q.candidates, candidates[i].Point)
	}
	return g.search(ctx, app, q, func(planner *capacity.Planner) (*answer, []string, error) {
		if q.RateGiven && planner.Shared == nil {
			printNotes(app.Stderr, []string{"workload.rate is not used: goodput is the largest rate; " +
				"sparseserve plan finds what to buy for a rate"})
		}
		planner.Planned(capacity.GuessRuns(&q.Goodput, candidates...))
		all, notes, err := planner.Do(ctx, q.Goodput, candidates)
		asked := answers.Asked(q.Configs()...)
		for i := range all {
			all[i].Asked = asked
		}
		return &answer{all, func(name string) *doc.Doc { return answers.Goodputs(name, all) },
			func() ([]run.File, error) { return capacity.GoodputFiles(all) }}, notes, err
	})
}
