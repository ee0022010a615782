package run

import (
	"bufio"
	"fmt"
	"io"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// chromeTrace writes steps as a trace for Perfetto and chrome://tracing:
//
//	scheduler  the host's time of a step
//	compute    its other phases
//	H2D        loads that the step waits for
//	D2H        saves, from the step that starts them until they are in DRAM
//	CPU        the scatter of FlashD2H, which overlaps the saves' copies
//
// A step's times are known per phase, summed over its layers, so each phase is one slice, in the
// order of a layer's work. It implements sim.Recorder and forwards everything to the next recorder.
type chromeTrace struct {
	next    sim.Recorder
	out     *bufio.Writer
	scatter bool       // saves end with the CPU's scatter
	saved   []des.Time // by replica, when its last save so far is in DRAM
	replica int        // of the step that is written: a process of the trace
	err     error
}

// Lanes of a trace.
const (
	schedulerLane = 1 + iota
	computeLane
	h2dLane
	d2hLane
	cpuLane
)

func newChromeTrace(w io.Writer, next sim.Recorder, scatter bool, replicas int) *chromeTrace {
	c := &chromeTrace{next: next, out: bufio.NewWriter(w), scatter: scatter,
		saved: make([]des.Time, replicas)}
	c.print(`{"displayTimeUnit":"ms","traceEvents":[`)
	lanes := []string{"scheduler", "compute", "H2D", "D2H"}
	if scatter {
		lanes = append(lanes, "CPU scatter")
	}
	for replica := range replicas {
		if replica > 0 {
			c.print(",")
		}
		if replicas > 1 {
			c.print("\n"+`{"ph":"M","name":"process_name","pid":%d,"args":{"name":"replica %d"}},`,
				replica+1, replica)
		}
		for i, name := range lanes {
			if i > 0 {
				c.print(",")
			}
			c.print("\n"+`{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%q}},`,
				replica+1, i+1, name)
			c.print("\n"+`{"ph":"M","name":"thread_sort_index","pid":%d,"tid":%d,"args":{"sort_index":%d}}`,
				replica+1, i+1, i+1)
		}
	}
	return c
}

// Request implements sim.Recorder.
func (c *chromeTrace) Request(r *metrics.Request) error { return c.next.Request(r) }

// Gap implements sim.Recorder.
func (c *chromeTrace) Gap(t des.Time) { c.next.Gap(t) }

// Step implements sim.Recorder.
func (c *chromeTrace) Step(r *metrics.Step) error {
	p := &r.Timing.Phases
	c.replica = r.Replica
	saved := &c.saved[r.Replica]
	c.slice(schedulerLane, "host", r.Start, p.Host,
		`"step":%d,"decodes":%d,"prefills":%d,"waiting":%d`,
		r.Index, r.Decodes, r.Prefills, r.Waiting)
	at := r.Start + p.Host
	for _, phase := range []struct {
		name string
		time des.Time
	}{
		{"scoring", p.Scoring}, {"load stall", p.LoadStall},
		{"linears", p.Linears}, {"prefill attention", p.PrefillAttention},
		{"prefill index", p.PrefillIndex},
		{"dense attention", p.DenseAttention}, {"sparse attention", p.SparseAttention},
		{"save stall", p.SaveStall}, {"LM head", p.Head}, {"all-reduce", p.AllReduce},
	} {
		c.slice(computeLane, phase.name, at, phase.time, `"step":%d`, r.Index)
		if phase.name == "load stall" {
			c.slice(h2dLane, "load", at, phase.time, `"step":%d,"blocks":%d`, r.Index, r.Loaded)
		}
		at += phase.time
	}
	if done := r.Start + r.Timing.SavesDone; r.Saved > 0 && done > *saved {
		from := max(*saved, r.Start)
		c.slice(d2hLane, "save", from, done-from, `"step":%d,"blocks":%d`, r.Index, r.Saved)
		if c.scatter {
			c.slice(cpuLane, "scatter", from, done-from, `"step":%d,"blocks":%d`, r.Index, r.Saved)
		}
		*saved = done
	}
	c.count(r.Start, "waiting", r.Waiting)
	c.count(r.Start, "batch", r.Decodes+r.Prefills)
	if c.err != nil {
		return c.err
	}
	return c.next.Step(r)
}

// slice writes an interval of a lane. It omits empty ones.
func (c *chromeTrace) slice(lane int, name string, start, length des.Time, format string,
	args ...any) {
	if length > 0 {
		c.print(",\n"+`{"ph":"X","name":%q,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{%s}}`,
			name, c.replica+1, lane, microseconds(start), microseconds(length), fmt.Sprintf(format, args...))
	}
}

// count writes a counter.
func (c *chromeTrace) count(at des.Time, name string, n int) {
	c.print(",\n"+`{"ph":"C","name":%q,"pid":%d,"ts":%s,"args":{%q:%d}}`, name, c.replica+1,
		microseconds(at), name, n)
}

func (c *chromeTrace) print(format string, args ...any) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.out, format, args...)
	}
}

// close ends the document.
func (c *chromeTrace) close() error {
	c.print("\n]}\n")
	if c.err == nil {
		c.err = c.out.Flush()
	}
	return c.err
}

// microseconds prints a time exactly, to the nanosecond.
func microseconds(t des.Time) string {
	return fmt.Sprintf("%d.%03d", t/des.Microsecond, t%des.Microsecond)
}
