package cli

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
)

// searchFlags are flags of goodput and plan, which make runs until they have an answer.
type searchFlags struct {
	settings
	resultFlags
	storeFlags
	jobFlags
	taskFlags
}

// question is the question of goodput or plan.
type question struct {
	command, file string
	unit          string // of its progress
	sets, cards   []string
	folder        string // name of the results
	*config.Sweep
	candidates []config.Point
}

// load reads the configuration.
func (q *question) load(watch config.Watch) (err error) {
	q.file = cmp.Or(q.file, experiments.Default)
	if q.Sweep, err = config.LoadPlan(q.file, q.sets, watch, q.cards...); err != nil {
		return err
	}
	q.folder = cmp.Or(q.folder, q.Name+settingsName(q.sets))
	return nil
}

// search finds the answer of a question, or writes a job that makes its runs.
func (f *searchFlags) search(ctx context.Context, app *App, q *question,
	find func(*capacity.Planner) (*answer, []string, error)) (err error) {
	if f.Tasks > 0 {
		return f.share(app, find)
	}
	cluster, err := f.cluster(f.JSON)
	if err != nil {
		return err
	}
	if cluster != nil {
		if err := checkJobWords(append(q.sets, q.file, f.Out, q.folder, f.Points)...); err != nil {
			return err
		}
	}
	asked, err := run.Ask(q.command, q.folder, q.file, slices.Concat(q.sets, q.cards), q.Paths())
	if err != nil {
		return err
	}
	folder, err := openAnswer(app, asked, &f.resultFlags, &f.storeFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if cluster != nil {
		return f.writeJob(app, cluster, q, folder)
	}
	return f.answer(ctx, app, folder, q.unit, func(bar *progress) (*answer, []string, error) {
		return find(&capacity.Planner{Store: folder.Store, Run: app.Run, Workers: int(f.Workers),
			Planned: bar.planned, Finished: bar.finished, Say: bar.say})
	})
}

// share runs one task of a job. All tasks search for the answer, one of them makes each run, and
// the command that wrote the job collects the runs.
func (f *searchFlags) share(app *App,
	find func(*capacity.Planner) (*answer, []string, error)) error {
	return f.withStore(app, f.Points, func(store *run.Store) ([]string, error) {
		_, notes, err := find(&capacity.Planner{Store: store, Run: app.Run, Workers: 1,
			Planned: func(int) {}, Shared: &run.Shared{Task: f.Task, Tasks: f.Tasks}})
		return notes, err
	})
}

// mostSearchTasks is the maximum number of tasks that share a search. More tasks would mostly wait,
// because a purchase must know each price before it can skip more expensive candidates.
const mostSearchTasks = 64

// writeJob writes a job whose tasks make the runs of the search, and prints how to submit it.
func (f *searchFlags) writeJob(app *App, cluster run.Cluster, q *question,
	folder *run.Folder) error {
	var cards []string
	if len(q.cards) > 0 {
		cards = []string{"--gpus", strings.Join(q.cards, ",")}
	}
	of := answers.Count(len(q.candidates), "candidate") + " to look at. "
	return f.jobFlags.write(app, cluster, folder, of, q.candidates, &run.Job{Name: q.Name,
		Args:  jobArgs(folder, q.sets, append([]string{q.command, q.file}, cards...)...),
		Tasks: min(len(q.candidates), mostSearchTasks)})
}

// openAnswer opens the folder of an answer. Without --out it is the first of out/COMMAND/NAME,
// out/COMMAND/NAME-2, .. that is new or has the same question.
func openAnswer(app *App, q *run.Question, r *resultFlags, s *storeFlags) (folder *run.Folder,
	err error) {
	first := cmp.Or(r.Out, filepath.Join("out", q.Command, q.Name))
	err = numbered(first, r.Out == "", func(dir string) error {
		folder, err = run.OpenFolder(dir, app.Version, q, s.Points, r.Force)
		return err
	}, run.ErrTaken)
	return folder, err
}
