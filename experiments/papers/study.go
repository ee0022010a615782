package papers

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// study runs an experiment that is neither a sweep nor a plan, and writes its table.
type study func(*Studies, *experiments.Experiment) error

// studies lists all studies with the columns of their tables.
var studies = map[string]study{
	"fig04": studyOf((*Studies).transfers, "direction engine block_tokens block_bytes blocks gb_s"),
	"fig08": studyOf((*Studies).overlap, "seed window requests overlap"),
	"eviction": studyOf((*Studies).evictions,
		"seed pool eviction kv_gib steps selected loaded hit_ratio"),
	"psa-fig2": studyOf((*Studies).sparsity, "dataset layer seed budget_blocks tokens_share"),
	"psa-fig5": studyOf((*Studies).accuracy,
		"model dataset system seed knob kv_share recall accuracy_proxy"),
	"mi-fig1b": studyOf((*Studies).prompts,
		"system gpus seed tokens seconds attention_s index_s published_s"),
	"mi-fig10": studyOf((*Studies).kernels, "pattern heads tokens kernel_ms index_ms sparsity"),
}

// studyOf returns a study with settings S. measure adds the rows, with cells in the order of the
// columns.
func studyOf[S any](measure func(*Studies, *S, *run.Table) error, columns string) study {
	return func(l *Studies, e *experiments.Experiment) error {
		var spec S
		decode(e.Name, e.Text, &spec)
		t := run.NewTable(strings.Fields(columns)...)
		if err := measure(l, &spec, t); err != nil {
			return err
		}
		return l.write(e, run.File{Name: studyFile, Text: []byte(e.Text)},
			run.File{Name: tableFile, Text: t.Bytes()})
	}
}

// addRows adds one row per combination, in their order. cells runs on all cores concurrently; a
// combination for which it returns nil has no row.
func addRows[C any](l *Studies, t *run.Table, all []C, cells func(C) ([]any, error)) error {
	rows := make([][]any, len(all))
	group, ctx := errgroup.WithContext(l.ctx)
	group.SetLimit(cmp.Or(max(l.Workers, 0), runtime.GOMAXPROCS(0)))
	for i, c := range all {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				rows[i], err = cells(c)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, row := range rows {
		if row != nil {
			t.Add(row...)
		}
	}
	return nil
}

// scores returns the score process with the change applied, and its parameters.
func (l *Studies) scores() (*score.Process, *score.Params) {
	p := config.Point{Common: config.Common{Scores: score.Default}}
	l.alter(&p)
	return score.New(p.Scores, run.ScoreSeed), &p.Scores
}

// promptLengths returns the prompt lengths of a trace's requests, in tokens.
func promptLengths(work traces.Spec, seed uint64, tokenizer ...traces.Tokenizer) ([]int, error) {
	stream, err := traces.Open(work, seed, tokenizer...)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", work.Datasets, err)
	}
	defer stream.Close()
	var lengths []int
	for {
		a, ok, err := stream.Next()
		if err != nil || !ok {
			return lengths, err
		}
		lengths = append(lengths, a.Prompt)
	}
}

// paperExperiments lists the experiments of the papers' figures, in the papers' order.
func paperExperiments() []experiments.Experiment {
	return slices.DeleteFunc(experiments.BuiltIn(), func(e experiments.Experiment) bool {
		return !e.Paper
	})
}

// PaperExperiments names the experiments of the papers' figures.
func PaperExperiments() []string {
	var names []string
	for _, e := range paperExperiments() {
		names = append(names, e.Name)
	}
	return names
}

// apart reports whether an experiment takes so long that it runs only if named.
func apart(name string) bool {
	return strings.HasPrefix(name, "psa-") && name != "psa-fig2" && name != "psa-fig5"
}
