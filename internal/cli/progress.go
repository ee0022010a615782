package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// heartbeat is the interval between two progress lines without a terminal.
const heartbeat = 30 * time.Second

// progress is a progress bar with the remaining time on a terminal, and a line per heartbeat
// elsewhere. The total may grow during the work. Its methods are safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	unit  string
	total int
	done  int
	start time.Time
	said  string                   // how it stands
	bar   *progressbar.ProgressBar // nil until something is planned, and where there is no terminal
	beat  *time.Ticker             // nil on a terminal
	ended chan struct{}
}

func newProgress(w io.Writer, unit string) *progress {
	p := &progress{w: w, unit: unit, start: time.Now(), ended: make(chan struct{})}
	if !isTerminal(w) {
		p.beat = time.NewTicker(heartbeat)
		go p.report(p.beat.C)
	}
	return p
}

// report writes a line per beat until the end.
func (p *progress) report(beats <-chan time.Time) {
	for {
		select {
		case <-p.ended:
			return
		case now := <-beats:
			p.mu.Lock()
			fmt.Fprintf(p.w, "%d of %d %s after %s%s\n", p.done, p.total, p.unit,
				now.Sub(p.start).Round(time.Second), p.said)
			p.mu.Unlock()
		}
	}
}

// planned adds n to the total; n may be negative.
func (p *progress) planned(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total += n; p.bar != nil {
		p.bar.ChangeMax(p.total)
	}
	if p.bar != nil || p.beat != nil {
		return
	}
	p.bar = progressbar.NewOptions(p.total,
		progressbar.OptionSetWriter(terminal(p.w)),
		progressbar.OptionSetDescription(p.unit),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(100e6), // ns
		progressbar.OptionClearOnFinish(),
	)
}

// say shows a status text beside the count.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said = ", " + text; p.bar != nil {
		p.bar.Describe(p.unit + p.said)
	}
}

// at sets the number of finished items and the name of the next.
func (p *progress) at(done, of int, what string) {
	p.planned(of - p.total)
	p.say(what)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done = done; p.bar != nil {
		p.bar.Set(done)
	}
}

// finished counts one finished item.
func (p *progress) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.bar != nil {
		p.bar.Add(1)
	}
}

// close removes the bar.
func (p *progress) close() {
	close(p.ended)
	if p.beat != nil {
		p.beat.Stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Finish()
	}
}

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
			draw = nil // the error appears when all runs are drawn
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
	paths, err := drawIn(ctx, dir, all)
	if err == nil {
		bar.say(fmt.Sprintf("%d runs are in %s", len(runs.Sums), filepath.Base(paths[0])))
	}
	return err
}
