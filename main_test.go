package main

import (
	"os/signal"
	"syscall"
	"testing"
)

// TestUntilSignal: each signal to end ends the context, and is known.
func TestUntilSignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) { // SIGHUP under nohup
			continue
		}
		ctx, caught := untilSignal()
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if got := caught(); got != s {
			t.Errorf("%v: caught %v", s, got)
		}
	}
}
