package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/traces"
)

// heartbeat is the time between two lines where no terminal shows a bar.
const heartbeat = 30 * time.Second

// progress is a bar with the time left on a terminal, and a line at each heartbeat elsewhere. How
// much there is to do may become known on the way. Its methods may be called from many
// goroutines.
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

// report writes a line at each beat until the end.
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

// manyPoints take seconds to read.
const manyPoints = 5000

// watch shows how far points are read, where they are many, and ends their reading with ctx. They
// may be read in several passes. end takes the bar of the last one away.
func (a *App) watch(ctx context.Context) (watch config.Watch, end func()) {
	var bar *progress
	said := isTerminal(a.Stderr)
	end = func() {
		if bar != nil {
			bar.close()
			bar = nil
		}
	}
	return func(done, of int) error {
		switch {
		case of < manyPoints:
		case done == 0:
			end()
			if bar = newProgress(a.Stderr, "points read"); !said {
				said = true
				fmt.Fprintf(a.Stderr, "reading %d points\n", of)
			}
			bar.planned(of)
		default:
			bar.finished()
		}
		return ctx.Err()
	}, end
}

// planned adds to what there is to do, or takes from it.
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

// say shows how it stands, beside the count.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said = ", " + text; p.bar != nil {
		p.bar.Describe(p.unit + p.said)
	}
}

// finished counts one.
func (p *progress) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.bar != nil {
		p.bar.Add(1)
	}
}

// close takes the bar away.
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

// requestsOf counts the requests of points.
func requestsOf(points []config.Point) int {
	specs := make([]traces.Spec, len(points))
	for i := range points {
		specs[i] = points[i].Workload
	}
	return traces.Count(specs...)
}
