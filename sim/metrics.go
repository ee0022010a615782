package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Metrics accumulates the figures of one run in bounded memory.
type Metrics struct {
	distributions
	counts
	moved
	rates        rates
	steps, batch int64
	recomputed   recomputation
	start, end   des.Time
	phases       Phases
	extrapolated uint32
	recalls      recalls
	prefix       PrefixUse
	replicas     []replicaUse
	journal      *journal // nil without a Cutoff
	window       *Window
	windowNote   string
	about
}

// distributions are the latencies of served requests.
type distributions struct{ TTFT, TBT, TPOT, E2E, QueueDelay Distribution }

// counts are of requests.
type counts struct {
	submitted, done, refused, preemptions int
	retried, goodOf                       int    // goodOf: completed requests that good accepts
	refusal                               string // reason of the first rejection
	truncations                           truncations
	finishedTokens                        int64 // output tokens of completed requests
}

// moved counts blocks of the whole model.
type moved struct {
	selected, loaded, resumed, saved int64
	ahead                            int64 // part of loaded
	// rounds of progressive attention, and the layers that ran them
	rounds, inRounds int64
}

// about is what holds for a whole run, whatever part of it the metrics cover.
type about struct {
	layers      int   // of the model
	room        int64 // KV capacity in tokens, over all replicas
	capacity    Capacity
	good        func(*RequestRecord) bool // nil: not evaluated
	longWait    float64                   // s
	trend       trend                     // shows whether means depend on the run's length
	stranded    int                       // requests that waited for a replica
	strandedFor des.Time                  // longest wait for a replica
	progressive int                       // layers per step with progressive attention
	prefixes    bool                      // with a prefix cache
	tiers       bool                      // with tiers below HBM
	dram        bool                      // with a DRAM tier

	blockBytes      int64
	offload         bool
	sampled, groups int     // of (layer, KV head) pairs; sampled = 0 when all are simulated
	loadError       float64 // relative standard error of loaded due to sampling
}

// rates counts completions and tokens, to be divided by the run's time.
type rates struct {
	requests, good int
	prompts        int64 // prompt tokens of these requests
	tokens         int64 // output tokens, including requests in flight
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	return &Metrics{start: -1, replicas: make([]replicaUse, 1)}
}

// Distribution accumulates durations.
type Distribution struct {
	sum     float64
	n       int64
	samples stats.Counts // nanoseconds
}

func (d *Distribution) add(t des.Time) { d.addMany(t, 1) }

// addMany adds a duration n times, with the same rounding as n calls of add.
func (d *Distribution) addMany(t des.Time, n int) {
	seconds := t.Seconds()
	for range n {
		d.sum += seconds
	}
	d.n += int64(n)
	d.samples.Add(int64(t), n)
}

// Stats returns mean and percentiles in seconds, or zeros when nothing was added.
func (d *Distribution) Stats() Stats {
	if d.n == 0 {
		return Stats{}
	}
	p := d.samples.Percentiles(50, 90, 95, 99)
	for i := range p {
		p[i] /= float64(des.Second)
	}
	return Stats{Mean: d.sum / float64(d.n), P50: p[0], P90: p[1], P95: p[2], P99: p[3]}
}

func (m *Metrics) arrived(at des.Time) {
	m.submitted++
	if m.journal != nil {
		m.journal.arrivals = append(m.journal.arrivals, at)
	}
	if m.start < 0 {
		m.start = at
	}
}

func (m *Metrics) rejected(why string) {
	if m.refused++; m.refused == 1 {
		m.refusal = why
	}
}

// remember keeps an ended request if figures may cover only a part of the run.
func (m *Metrics) remember(r *RequestRecord, gaps []des.Time, h recalled) {
	if m.journal != nil {
		h.rows = nil // the next request's
		m.journal.ended = append(m.journal.ended, ended{*r, gaps, h})
	}
}

func (m *Metrics) truncated(given, served int) { m.truncations.add(given, served) }

func (m *Metrics) scheduled(delay des.Time) {
	m.QueueDelay.add(delay)
	m.trend.add(delay.Seconds())
}

func (m *Metrics) gap(t des.Time)         { m.TBT.add(t) }
func (m *Metrics) gaps(t des.Time, n int) { m.TBT.addMany(t, n) }

func (m *Metrics) completed(r *RequestRecord) {
	m.done++
	m.replicas[r.Replica].requests++
	m.finishedTokens += int64(r.Output)
	m.finished(r)
	if m.good != nil && m.good(r) {
		m.goodOf++
	}
	m.TTFT.add(r.FirstToken - r.Arrival)
	m.E2E.add(r.LastToken - r.Arrival)
	if r.Output > 1 {
		m.TPOT.add(r.TPOT())
	}
	m.end = max(m.end, r.LastToken)
}

func (m *Metrics) finished(r *RequestRecord) {
	m.rates.requests++
	m.rates.prompts += int64(r.Prompt)
	if m.good != nil && m.good(r) {
		m.rates.good++
	}
}

func (m *Metrics) step(r *StepRecord) {
	m.steps++
	m.batch += int64(r.Decodes + r.Prefills)
	m.recomputed.step(r, m.layers)
	m.selected += r.Selected
	m.loaded += r.Loaded
	m.resumed += r.Resumed
	m.ahead += r.Ahead
	if r.Rounds > 0 {
		m.rounds += r.Rounds
		m.inRounds += int64(m.progressive)
	}
	m.saved += r.Saved
	m.prefix.add(&r.Prefix)
	m.phases.Add(&r.Timing.Phases)
	m.extrapolated |= r.Timing.Extrapolated
	m.replicas[r.Replica].step(r)
	if m.journal != nil {
		m.journal.steps = append(m.journal.steps, *r)
	}
}

// lostStep counts the prefix cache use of a failed replica since the end of its last step.
func (m *Metrics) lostStep(at des.Time, u PrefixUse) {
	m.prefix.add(&u)
	if m.journal != nil {
		m.journal.lost = append(m.journal.lost, lostUse{at, u})
	}
}

// GoodShare returns the share of served or rejected requests that Config.Good accepts.
func (m *Metrics) GoodShare() float64 {
	return float64(m.goodOf) / float64(max(1, m.done+m.refused))
}

// Extrapolated returns the union of the steps' Timing.Extrapolated.
func (m *Metrics) Extrapolated() uint32 { return m.extrapolated }

// Phases returns the time of all steps by phase.
func (m *Metrics) Phases() Phases { return m.phases }

// Summary returns the run's figures and warnings. The caller fills in names, rate and SLO.
func (m *Metrics) Summary() Summary {
	s := Summary{
		Requests: m.submitted, Completed: m.done, Rejected: m.refused, Preempted: m.preemptions,
		SimulatedS: (m.end - max(m.start, 0)).Seconds(), Steps: m.steps,
		TTFT: m.TTFT.Stats(), TBT: m.TBT.Stats(), TPOT: m.TPOT.Stats(), E2E: m.E2E.Stats(),
		QueueDelay: m.QueueDelay.Stats(),
		PhaseS:     m.phases.seconds(), Warnings: []warn.Warning{},
	}
	if s.SimulatedS > 0 {
		s.ThroughputTokS = float64(m.rates.tokens) / s.SimulatedS
		s.PromptTokS = float64(m.rates.prompts) / s.SimulatedS
		s.TotalTokS = s.PromptTokS + s.ThroughputTokS
		s.RequestThroughput = float64(m.rates.requests) / s.SimulatedS
	}
	if m.good != nil {
		goodput := 0.0
		if s.SimulatedS > 0 {
			goodput = float64(m.rates.good) / s.SimulatedS
		}
		s.RequestGoodput = &goodput
	}
	if ended := m.done + m.refused; ended > 0 {
		s.ServedShare = float64(m.done) / float64(ended)
	}
	s.Uses, s.Window = m.uses(s.SimulatedS), m.window
	s.Replicas, s.Retried, s.ReplicaLoads = m.fleet(s.SimulatedS)
	s.RecallProxy = m.recalls.proxy()
	if m.steps > 0 {
		s.BatchMean = float64(m.batch) / float64(m.steps)
	}
	if m.offload {
		s.H2DBytes, s.D2HBytes = m.loaded*m.blockBytes, m.saved*m.blockBytes
		if m.steps > 0 {
			s.BlocksLoadedPerStep = float64(m.loaded) / float64(m.steps)
		}
		if m.selected > 0 {
			s.HitRatio = 1 - float64(m.loaded-m.resumed-m.ahead)/float64(m.selected)
		}
	}
	if m.inRounds > 0 {
		s.ProgressiveStats = &ProgressiveStats{RoundsPerLayer: float64(m.rounds) / float64(m.inRounds),
			BlocksAhead: m.ahead}
	}
	if m.prefixes {
		s.PrefixCache = m.prefix.stats(m.dram)
	}
	s.Truncated = m.truncations.n
	if m.windowNote != "" {
		s.warn(warn.New(warn.Window, "%s", m.windowNote))
	}
	if m.refused > 0 {
		s.warn(warn.New(warn.Rejected, "%d of %d requests rejected: %s", m.refused, m.submitted,
			firstOf(m.refused, m.refusal)).With(map[string]float64{
			"rejected": float64(m.refused), "requests": float64(m.submitted)}))
	}
	if m.retried > 0 {
		s.warn(warn.New(warn.BeganAnew,
			"requests began anew %d times as their replicas failed", m.retried))
	}
	if s.Stranded = m.stranded; m.stranded > 0 {
		s.warn(warn.New(warn.ReplicasDown, "no replica was up for some time: %d of the requests waited "+
			"for one, up to %.6g s, which is part of their latencies", m.stranded, m.strandedFor.Seconds()))
	}
	m.preemption(&s)
	if m.truncations.n > 0 {
		s.warn(m.truncations.warning(m.submitted))
	}
	if w, grows := m.trend.warning(max(1, m.longWait)); grows {
		s.warn(w)
	}
	if m.sampled > 0 {
		s.warn(warn.New(warn.HeadsSampled,
			"heads sampled: %d of %d (layer, KV head) groups; blocks loaded "+
				"have a standard error of %.2g %%", m.sampled, m.groups, 100*m.loadError))
	}
	switch {
	case m.done == 0:
		s.warn(warn.New(warn.NoneFinished, "no request finished, so there are no latencies"))
	case m.done < EnoughRequests:
		s.warn(warn.New(warn.FewRequests,
			"only %d requests finished; figures from fewer than %d are noisy",
			m.done, EnoughRequests).With(map[string]float64{"finished": float64(m.done)}))
	}
	return s
}

// figures returns the metrics of the part of the run that the cutoff keeps.
func (m *Metrics) figures(c *Cutoff) *Metrics {
	if m.journal == nil {
		return m
	}
	return m.windowed(c)
}

// check verifies law 4: every request and every token is accounted for. Requests in flight have
// emitted the given number of tokens.
func (m *Metrics) check(inFlight int, emitted int64) error {
	if m.submitted != m.done+m.refused+inFlight {
		return fmt.Errorf("law 4: %d requests submitted, %d completed + %d rejected + %d in flight",
			m.submitted, m.done, m.refused, inFlight)
	}
	if emitted += m.finishedTokens; emitted != m.rates.tokens {
		return fmt.Errorf("law 4: %d tokens emitted, requests count %d", m.rates.tokens, emitted)
	}
	return nil
}
