package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// head describes the runs that are about to start.
type head struct {
	configs []*config.Config
	chosen  []capacity.Chosen
	tooLong string // share of the prompts; "" for none
}

// headOf chooses rates for configurations that need them and name none, and collects the head's
// data.
func headOf(ctx context.Context, app *App, all ...*config.Config) (*head, error) {
	h := &head{configs: all}
	bar := newProgress(app.Stderr, "requests of short runs that show what the systems sustain")
	defer bar.close()
	short := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		bar.planned(p.Workload.Requests)
		sink.Finished = bar.finished
		return app.Run(ctx, p, sink)
	}
	var err error
	if h.chosen, err = capacity.ChooseRates(ctx, short, all...); err == nil {
		h.tooLong, err = capacity.TooLong(all...)
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return h, err
}

// print prints the description of the runs, of which there are `points`, and how rates were chosen.
func (h *head) print(w io.Writer, points int) {
	fmt.Fprintf(w, "%s; %s: %s", inCell(answers.Asked(h.configs...)), answers.Seeds(h.configs...),
		answers.Count(points, "run"))
	if h.tooLong != "" {
		fmt.Fprint(w, "; ", h.tooLong)
	}
	fmt.Fprintln(w, ".")
	for i := range h.chosen {
		of := ""
		if len(h.chosen) > 1 {
			of = h.chosen[i].Model + ": "
		}
		fmt.Fprintf(w, "No rate is set. %s%s; --set workload.rate=LIST names others.\n", of,
			&h.chosen[i])
	}
}
