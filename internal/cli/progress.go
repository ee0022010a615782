package cli

import (
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar with the time left, on a terminal, and nothing elsewhere.
// How much there is to do may become known on the way. Its methods may be called
// from many goroutines.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	unit  string
	total int
	bar   *progressbar.ProgressBar // nil until something is planned
}

func newProgress(w io.Writer, unit string) *progress { return &progress{w: w, unit: unit} }

// planned adds to what there is to do, or takes from it.
func (p *progress) planned(n int) {
	if !isTerminal(p.w) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total += n; p.bar != nil {
		p.bar.ChangeMax(p.total)
		return
	}
	p.bar = progressbar.NewOptions(p.total,
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription(p.unit),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(100e6), // ns
		progressbar.OptionClearOnFinish(),
	)
}

// finished counts one.
func (p *progress) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Add(1)
	}
}

// close takes the bar away.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Finish()
	}
}
