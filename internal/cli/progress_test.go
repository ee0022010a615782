package cli

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedText is written to by one goroutine and read by another.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
	line chan struct{}
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.line <- struct{}{} }()
	return l.text.Write(p)
}

// TestHeartbeat: where no terminal shows a bar, each beat writes a line, and none follows the end.
func TestHeartbeat(t *testing.T) {
	out := &lockedText{line: make(chan struct{}, 4)}
	p := newProgress(out, "runs")
	p.planned(3)
	p.finished()
	beats := make(chan time.Time)
	go p.report(beats)
	beats <- p.start.Add(heartbeat)
	<-out.line
	p.finished()
	beats <- p.start.Add(2 * heartbeat)
	<-out.line
	p.close()
	select {
	case beats <- time.Now():
		t.Error("a beat after the end is taken")
	default:
	}
	if got, want := out.text.String(), "1 of 3 runs after 30s\n2 of 3 runs after 1m0s\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
