package metrics

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Cutoff selects the requests that a run's figures leave out: the [metrics] table of a
// configuration.
type Cutoff struct {
	// first requests to exclude: none, a fraction of all, or all until MSER-5 (White 1997) finds TTFT
	// and end-to-end time steady
	Warmup string `toml:"warmup"`
	// warmup = "share": fraction of all requests, in order of arrival
	WarmupShare float64 `toml:"warmup_share" used:"warmup_share" unit:"share" range:">= 0, < 1"`
	// last requests to exclude: none, a fraction of all, or all from where MSER-5, run backwards,
	// finds TTFT and end-to-end time steady
	Drain string `toml:"drain"`
	// drain = "share": fraction of all requests, in order of arrival
	DrainShare float64 `toml:"drain_share" used:"drain_share" unit:"share" range:">= 0, < 1"`
}

// CutRules lists the values of Cutoff.Warmup and Cutoff.Drain. An empty value means CutNone.
var CutRules = []string{CutNone, CutMSER, CutShare}

// Values of Cutoff.Warmup and Cutoff.Drain.
const (
	CutNone  = "none"
	CutMSER  = "mser"
	CutShare = "share"
)

// On reports whether the cutoff may leave anything out.
func (c *Cutoff) On() bool { return isCut(c.Warmup) || isCut(c.Drain) }

func isCut(rule string) bool { return rule != "" && rule != CutNone }

// Window is the measured part of a run. Latencies, rejections and shares cover requests that arrive
// in it. Rates, steps and utilisation cover events in it.
type Window struct {
	FromS float64 `json:"from_s"` // first arrival
	// arrival of the first request left out at the end, or the run's end
	ToS    float64 `json:"to_s"`
	Warmup int     `json:"warmup"` // requests left out at the start
	Drain  int     `json:"drain"`  // requests left out at the end
}

// journal keeps all records of a run with a Cutoff, because the measured part is known only at the
// end.
type journal struct {
	arrivals []des.Time // by ID - 1
	ended    []Life
	steps    []Step
	lost     []lostUse
}

// lostUse is the prefix cache use of a failed replica after the end of its last step.
type lostUse struct {
	at  des.Time
	use PrefixStats
}

// cut returns the number of requests to leave out at the start and at the end. settled is false if
// MSER-5 would leave out more than half.
func (j *journal) cut(c *Cutoff) (warmup, drain int, settled bool) {
	n := len(j.arrivals)
	var served []*Life // by arrival
	for i := range j.ended {
		if j.ended[i].Rejected == "" {
			served = append(served, &j.ended[i])
		}
	}
	slices.SortFunc(served, func(a, b *Life) int { return a.ID - b.ID })
	settled = true
	switch c.Warmup {
	case CutShare:
		warmup = int(c.WarmupShare * float64(n))
	case CutMSER:
		var at int
		if at, settled = steady(served); at > 0 {
			warmup = served[at].ID - 1
		}
	}
	switch c.Drain {
	case CutShare:
		drain = int(c.DrainShare * float64(n))
	case CutMSER:
		rest := served[:0]
		for _, r := range served {
			if r.ID > warmup {
				rest = append(rest, r)
			}
		}
		slices.Reverse(rest)
		at, ok := steady(rest)
		if settled = settled && ok; at > 0 {
			drain = n - rest[at].ID
		}
	}
	return warmup, min(drain, max(0, n-warmup-1)), settled
}

// steady returns the number of leading requests that MSER-5 leaves out: the maximum for TTFT and
// end-to-end time.
func steady(served []*Life) (cut int, settled bool) {
	ttft, e2e := make([]float64, len(served)), make([]float64, len(served))
	for i, r := range served {
		ttft[i], e2e[i] = (r.FirstToken - r.Arrival).Seconds(), (r.LastToken - r.Arrival).Seconds()
	}
	a, settledA := mser5(ttft)
	b, settledB := mser5(e2e)
	return max(a, b), settledA && settledB
}

// mserBatch is the batch size of MSER-5.
const mserBatch = 5

// mser5 returns the number of leading values to leave out. It minimises the squared standard error
// of the mean of the remaining values, over means Y of batches of five (White 1997; White, Cobb and
// Spratt 2000):
//
//	d* = argmin over d <= m/2 of  sum_{j>d} (Y_j - mean_{j>d} Y)^2 / (m - d)^2
//
// settled is false if d* is at the end of its range: the series is too short.
func mser5(x []float64) (cut int, settled bool) {
	m := len(x) / mserBatch
	if m < 2 {
		return 0, false
	}
	best, d := math.Inf(1), 0
	var n, centre, squares float64 // over the later batches, by Welford's method
	for j := m - 1; j >= 0; j-- {
		y := mean(x[j*mserBatch : (j+1)*mserBatch])
		n++
		delta := y - centre
		centre += delta / n
		squares += delta * (y - centre)
		if z := squares / (n * n); j <= m/2 && z <= best {
			best, d = z, j
		}
	}
	return d * mserBatch, d < m/2
}

// windowed returns the metrics of the part of the run that the cutoff keeps.
func (m *Run) windowed() *Run {
	j, c := m.journal, &m.of.Cutoff
	warmup, drain, settled := j.cut(c)
	n := len(j.arrivals)
	if n == 0 {
		return m
	}
	from, to := m.start, m.end
	if warmup > 0 {
		from = j.arrivals[warmup]
	}
	if drain > 0 && j.arrivals[n-drain] > from {
		to = j.arrivals[n-drain]
	}
	of := m.of
	of.Cutoff = Cutoff{}
	w := New(of)
	for _, at := range j.arrivals[warmup : n-drain] {
		w.Arrived(at)
	}
	refused := 0 // rejected requests that are left out
	for i := range j.ended {
		r := &j.ended[i]
		if r.ID > warmup && r.ID <= n-drain {
			w.replay(r)
		} else if r.Rejected != "" {
			refused++
		}
	}
	w.observed, w.rates, w.start, w.end = m.observed, rates{}, from, to
	for i := range j.ended {
		if r := &j.ended[i]; r.Rejected == "" && r.LastToken > from && r.LastToken <= to {
			w.finished(&r.Request)
		}
	}
	w.replaySteps(j.steps)
	for i := range j.lost {
		if l := &j.lost[i]; l.at > from && l.at <= to {
			w.prefix.Add(&l.use)
		}
	}
	w.window = &Window{FromS: nearest(from), ToS: nearest(to), Warmup: warmup, Drain: drain}
	w.windowNote = fmt.Sprintf("figures cover %d requests, from %.6g to %.6g s: "+
		"%d before are left out as warm-up (%s), %d after as drain (%s)", n-warmup-drain,
		from.Seconds(), to.Seconds(), warmup, orNone(c.Warmup), drain, orNone(c.Drain))
	if refused > 0 {
		w.windowNote += fmt.Sprintf("; %d of those left out were rejected", refused)
	}
	if !settled {
		w.windowNote += "; MSER-5 finds no steady part: the run is too short"
	}
	return w
}

// nearest returns a time in seconds, rounded to the nearest float64.
func nearest(t des.Time) float64 { return float64(t) / float64(des.Second) }

func orNone(rule string) string {
	if rule == "" {
		return CutNone
	}
	return rule
}

// replay counts a recorded request.
func (m *Run) replay(r *Life) {
	m.retried += r.Retries
	if r.Rejected != "" {
		m.Reject(r)
		return
	}
	if r.Prompt < r.Given {
		m.Truncate(r.Given, r.Prompt)
	}
	m.Schedule(r, r.Scheduled)
	m.preemptions += r.Preemptions
	for _, t := range r.gaps {
		m.TBT.add(t)
	}
	m.Complete(r)
}

// replaySteps counts the steps that end in the window, and the resource use of all steps within it.
func (m *Run) replaySteps(steps []Step) {
	for i := range steps {
		r := &steps[i]
		end := r.Start + r.Timing.Elapsed
		if end > m.start && end <= m.end {
			m.Step(r)
			m.rates.tokens += int64(r.Tokens)
		}
	}
	for i := range m.replicas {
		m.replicas[i].uses = uses{}
	}
	for i := range steps {
		m.replicas[steps[i].Replica].within(&steps[i], m.start, m.end)
	}
}
