package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// earlyEvery is the time to the first picture, and between one and the next.
const earlyEvery = 5 * time.Second

// early returns what takes each run as it finishes, from many goroutines, and draws the finished
// ones, in the order of points, while others go on. After an error it draws no more.
func early(points []config.Point, every time.Duration,
	draw func([]run.Result) error) func(run.Result) {
	var mu sync.Mutex
	var done []run.Result
	last := time.Now()
	place := func(r run.Result) int {
		return slices.IndexFunc(points, func(p config.Point) bool { return p.Name == r.Point.Name })
	}
	return func(r run.Result) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, r)
		if draw == nil || len(done) == len(points) || time.Since(last) < every {
			return
		}
		slices.SortFunc(done, func(a, b run.Result) int { return place(a) - place(b) })
		if draw(done) != nil {
			draw = nil // the pictures of all runs say what is wrong
		}
		last = time.Now()
	}
}

// drawEarly draws mean TTFT of runs that have finished, and names the picture beside the bar.
func drawEarly(ctx context.Context, bar *progress, dir string, runs *answers.Runs, of int) error {
	all, err := runs.Figures()
	all = slices.DeleteFunc(all, func(f doc.Figure) bool { return f.Name != "ttft" })
	if err != nil || len(all) == 0 {
		return err
	}
	all[0].Caption += fmt.Sprintf(" %d of %d runs.", len(runs.Sums), of)
	paths, err := figures.Draw(ctx, dir, all)
	if err == nil {
		bar.say(fmt.Sprintf("%d runs are in %s", len(runs.Sums), filepath.Base(paths[0])))
	}
	return err
}
