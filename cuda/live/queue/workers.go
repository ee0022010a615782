package queue

import (
	"runtime"
	"sync"
)

// workers are the threads of all queues of the process. The thread of a closed queue serves the
// next: the library keeps state for every thread that it does not free, such as a cuBLAS handle.
var workers threadPool

type threadPool struct {
	mu   sync.Mutex
	idle []chan func()
}

func (c *threadPool) start(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		c.idle[n-1] <- f
		c.idle = c.idle[:n-1]
		return
	}
	work := make(chan func(), 1)
	work <- f
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
			c.mu.Lock()
			c.idle = append(c.idle, work)
			c.mu.Unlock()
		}
	}()
}
