package metrics

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Run accumulates the figures of one run in bounded memory.
type Run struct {
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
	prefix       PrefixStats
	replicas     []replicaUse
	journal      *journal // nil without a Cutoff
	window       *Window
	windowNote   string
	of           About
	observed
}

// About describes the server of a run, or the servers of a fleet.
type About struct {
	Replicas    int
	Layers      int   // of the model
	Progressive int   // layers per step with progressive attention
	Tokens      int64 // KV capacity, over all replicas
	BlockBytes  int64
	KVBytes     int64 // of HBM for KV blocks, metadata and prefill buffers
	DRAMBytes   int64
	Offload     bool
	Prefixes    bool // with a prefix cache
	Tiers       bool // with tiers below HBM
	DRAM        bool // with a DRAM tier
	Measure
}

// Measure is the service level and the card that a run is measured against, and the cutoff.
type Measure struct {
	Good func(*Request) bool // whether a served request met the SLO; nil: not evaluated
	// LongWait is the queue delay in seconds that the SLO allows. A growing queue causes a warning
	// only if delays exceed both LongWait and one second.
	LongWait float64
	Cutoff   Cutoff // the part of the run that the figures leave out
	// CardBytes is the size of the card's HBM; 0 if unknown. FixedBytes is the part for weights,
	// runtime and activations.
	CardBytes, FixedBytes int64
}

// distributions are the latencies of served requests.
type distributions struct{ TTFT, TBT, TPOT, E2E, QueueDelay Distribution }

// counts counts requests by their fate.
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

// observed is what holds for a whole run, whatever part of it the metrics cover.
type observed struct {
	trend       trend    // shows whether means depend on the run's length
	stranded    int      // requests that waited for a replica
	strandedFor des.Time // longest wait for a replica

	sampled, groups int     // of (layer, KV head) pairs; sampled = 0 when all are simulated
	loadError       float64 // relative standard error of loaded due to sampling
}

// rates counts completions and tokens, to be divided by the run's time.
type rates struct {
	requests, good int
	prompts        int64 // prompt tokens of these requests
	tokens         int64 // output tokens, including requests in flight
}

// New returns the metrics of a run that begins.
func New(of About) *Run {
	m := &Run{start: -1, replicas: make([]replicaUse, of.Replicas), of: of}
	if of.Cutoff.On() {
		m.journal = &journal{}
	}
	return m
}

// Arrived counts a request.
func (m *Run) Arrived(at des.Time) {
	m.submitted++
	if m.journal != nil {
		m.journal.arrivals = append(m.journal.arrivals, at)
	}
	if m.start < 0 {
		m.start = at
	}
}

// remember keeps an ended request if figures may cover only a part of the run.
func (m *Run) remember(l *Life) {
	if m.journal != nil {
		m.journal.ended = append(m.journal.ended, *l)
	}
}

// Reject counts a request that is rejected.
func (m *Run) Reject(l *Life) {
	if m.refused++; m.refused == 1 {
		m.refusal = l.Rejected
	}
	m.remember(l)
}

// Truncate counts a prompt that is served in part, in tokens.
func (m *Run) Truncate(given, served int) { m.truncations.add(given, served) }

// Schedule records the first step of a request.
func (m *Run) Schedule(l *Life, at des.Time) {
	l.Started, l.Scheduled = true, at
	delay := at - l.Arrival
	m.QueueDelay.add(delay)
	m.trend.add(delay.Seconds())
}

// Preempt counts a preemption of a request.
func (m *Run) Preempt(l *Life) {
	l.Preemptions++
	m.preemptions++
}

// Retry counts a request that begins anew because its replica failed.
func (m *Run) Retry(l *Life) {
	l.Retries++
	m.retried++
}

// Strand counts a request that no replica takes.
func (m *Run) Strand() { m.stranded++ }

// Wait records how long a request had no replica.
func (m *Run) Wait(t des.Time) { m.strandedFor = max(m.strandedFor, t) }

// Emit records a token of a request. The gap since the token before it is 0 for the first one.
func (m *Run) Emit(l *Life, first bool, now des.Time) (gap des.Time) {
	if first {
		l.FirstToken = now
	} else {
		gap = now - l.LastToken
		l.LongestTBT = max(l.LongestTBT, gap)
		m.TBT.add(gap)
		if m.journal != nil {
			l.gaps = append(l.gaps, gap)
		}
	}
	l.LastToken = now
	m.rates.tokens++
	return gap
}

// EmitMany records a token of n requests each, whose records do not change. KeepsTokens must be
// false.
func (m *Run) EmitMany(gap des.Time, n int) {
	m.TBT.addMany(gap, n)
	m.rates.tokens += int64(n)
}

// KeepsTokens reports whether each token is kept, because a Cutoff may leave it out.
func (m *Run) KeepsTokens() bool { return m.journal != nil }

// Complete counts a request that is served.
func (m *Run) Complete(l *Life) {
	l.Recall, l.Missed2 = l.Recalled.means()
	m.recalls.add(&l.Recalled)
	m.remember(l)
	r := &l.Request
	m.done++
	m.replicas[r.Replica].requests++
	m.finishedTokens += int64(r.Output)
	m.finished(r)
	if m.of.Good != nil && m.of.Good(r) {
		m.goodOf++
	}
	m.TTFT.add(r.FirstToken - r.Arrival)
	m.E2E.add(r.LastToken - r.Arrival)
	if r.Output > 1 {
		m.TPOT.add(r.TPOT())
	}
	m.end = max(m.end, r.LastToken)
}

func (m *Run) finished(r *Request) {
	m.rates.requests++
	m.rates.prompts += int64(r.Prompt)
	if m.of.Good != nil && m.of.Good(r) {
		m.rates.good++
	}
}

// Step counts a step. The record is not kept.
func (m *Run) Step(r *Step) {
	m.steps++
	m.batch += int64(r.Decodes + r.Prefills)
	m.recomputed.step(r, m.of.Layers)
	m.selected += r.Selected
	m.loaded += r.Loaded
	m.resumed += r.Resumed
	m.ahead += r.Ahead
	if r.Rounds > 0 {
		m.rounds += r.Rounds
		m.inRounds += int64(m.of.Progressive)
	}
	m.saved += r.Saved
	m.prefix.Add(&r.Prefix)
	m.phases.Add(&r.Timing.Phases)
	m.extrapolated |= r.Timing.Extrapolated
	m.replicas[r.Replica].step(r)
	if m.journal != nil {
		m.journal.steps = append(m.journal.steps, *r)
	}
}

// Lost counts the prefix cache use of a failed replica since the end of its last step.
func (m *Run) Lost(at des.Time, u PrefixStats) {
	m.prefix.Add(&u)
	if m.journal != nil {
		m.journal.lost = append(m.journal.lost, lostUse{at, u})
	}
}

// GoodShare returns the share of served or rejected requests that About.Good accepts.
func (m *Run) GoodShare() float64 {
	return float64(m.goodOf) / float64(max(1, m.done+m.refused))
}

// Extrapolated returns the union of the steps' Timing.Extrapolated.
func (m *Run) Extrapolated() uint32 { return m.extrapolated }

// Phases returns the time of all steps by phase.
func (m *Run) Phases() Phases { return m.phases }

// Summary returns the run's figures and warnings. The caller fills in names, rate and SLO.
func (m *Run) Summary() Summary {
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
	if m.of.Good != nil {
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
	if m.of.Offload {
		s.H2DBytes, s.D2HBytes = m.loaded*m.of.BlockBytes, m.saved*m.of.BlockBytes
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
	if m.of.Prefixes {
		s.PrefixCache = m.prefix.ofRun(m.of.DRAM)
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
	if w, grows := m.trend.warning(max(1, m.of.LongWait)); grows {
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

// End sets the time of a run that ends early.
func (m *Run) End(at des.Time) { m.end = max(m.end, at) }

// Sampled records that only some of the groups of KV heads are simulated, and the relative standard
// error of the loaded blocks.
func (m *Run) Sampled(sampled, groups int, loadError float64) {
	m.sampled, m.groups, m.loadError = sampled, groups, max(m.loadError, loadError)
}

// Figures returns the metrics of the part of the run that the cutoff keeps.
func (m *Run) Figures() *Run {
	if m.journal == nil {
		return m
	}
	return m.windowed()
}

// Check verifies law 4: every request and every token is accounted for. Requests in flight have
// emitted the given number of tokens.
func (m *Run) Check(inFlight int, emitted int64) error {
	if m.submitted != m.done+m.refused+inFlight {
		return fmt.Errorf("law 4: %d requests submitted, %d completed + %d rejected + %d in flight",
			m.submitted, m.done, m.refused, inFlight)
	}
	if emitted += m.finishedTokens; emitted != m.rates.tokens {
		return fmt.Errorf("law 4: %d tokens emitted, requests count %d", m.rates.tokens, emitted)
	}
	return nil
}
