package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// mostPlanTasks is how many tasks share a plan at most: more would mostly wait, since of what is
// bought each price must be known before dearer candidates are left out.
const mostPlanTasks = 64

// writeJob writes a job whose tasks make the runs of the plan, and how to submit it.
func (p *planCmd) writeJob(app *App, cluster run.Cluster, q planQuestion,
	out, points string) error {
	var all []config.Point
	for i := range q.candidates {
		all = append(all, q.candidates[i].Point)
	}
	if q.offers != nil {
		all = q.offers.Points()
	}
	if err := readableLater(all); err != nil {
		return err
	}
	program, here, err := programHere()
	if err != nil {
		return err
	}
	args := []string{"plan-task", p.Config, "--points", points}
	for _, set := range p.Set {
		args = append(args, "--set", set)
	}
	if len(p.GPUs) > 0 {
		args = append(args, "--gpus", strings.Join(p.GPUs, ","))
	}
	job, err := run.WriteJob(out, cluster, &run.Job{Name: q.Name, WorkDir: here, Program: program,
		Args: args, Tasks: min(len(all), mostPlanTasks)})
	if err != nil {
		return err
	}
	fmt.Fprintf(app.Stdout, "%s to look at. ", count(len(all), "candidate"))
	p.printSubmit(app.Stdout, job)
	return nil
}

// planTaskCmd is one task of a job that plan --engine writes. All of them make the plan, each run
// by one of them, and leave its runs in the store; the answer is the plan's that collects.
type planTaskCmd struct {
	planCmd
	taskFlags
}

func (p *planTaskCmd) Run(ctx context.Context, app *App) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	q, err := p.question(nil)
	if err != nil {
		return err
	}
	store, err := run.OpenPointStore(p.Points, app.Version, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	planner := capacity.Planner{Store: store, Run: app.Run, Workers: 1,
		Shared: &run.Shared{Task: p.Task, Tasks: p.Tasks}}
	var notes []string
	if q.offers != nil {
		_, notes, err = planner.Purchase(ctx, q.offers)
	} else {
		_, notes, err = planner.Do(ctx, q.Goodput, q.candidates)
	}
	printNotes(app.Stderr, notes)
	return err
}
