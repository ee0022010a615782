package cli

import (
	"io"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar of finished requests on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, requests int) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(requests,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("requests"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(100e6), // ns
		progressbar.OptionClearOnFinish(),
	)}
}

// finished counts one request. It may be called from many goroutines.
func (p *progress) finished() {
	if p.bar != nil {
		p.bar.Add(1)
	}
}

// close takes the bar away.
func (p *progress) close() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
