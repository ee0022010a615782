package metrics

import "github.com/sparseserve/sparseserve/sim/des"

// Phases splits the time on the step's critical path.
type Phases struct {
	Linears, PrefillAttention, DenseAttention, SparseAttention des.Time
	// index computation of sparse prefill
	PrefillIndex des.Time
	Scoring      des.Time // metadata scores, top-k
	LoadStall    des.Time // compute waits for H2D
	SaveStall    des.Time // compute waits for D2H, is slowed by it, or copies for it
	Head         des.Time // embedding, LM head, sampling
	AllReduce    des.Time // between the GPUs of tensor parallelism
	Host         des.Time // planning, launches, per-layer synchronisation
	Unsplit      des.Time // steps whose device does not report phases
}

// all lists the phases.
func (p *Phases) all() [12]*des.Time {
	return [...]*des.Time{&p.Linears, &p.PrefillAttention, &p.DenseAttention, &p.SparseAttention,
		&p.Scoring, &p.LoadStall, &p.SaveStall, &p.Head, &p.Host,
		&p.PrefillIndex, &p.AllReduce, &p.Unsplit}
}

// phaseKeys names the phases of all in results. Phases from mostPhases on are left out if they took
// no time: they need sparse prefill, tensor parallelism, or a device that does not report phases.
var phaseKeys = [...]string{"linears", "prefill_attention", "dense_attention", "sparse_attention",
	"scoring", "load_stall", "save_stall", "head", "host", "prefill_index", "all_reduce", UnsplitPhase}

const mostPhases = 9

// Sum returns the total of all phases.
func (p *Phases) Sum() (sum des.Time) {
	for _, t := range p.all() {
		sum += *t
	}
	return sum
}

// Add adds q to p, phase by phase.
func (p *Phases) Add(q *Phases) {
	more := q.all()
	for i, t := range p.all() {
		*t += *more[i]
	}
}

// Repeat adds n times the difference between p and before.
func (p *Phases) Repeat(before *Phases, n des.Time) {
	was := before.all()
	for i, t := range p.all() {
		*t += n * (*t - *was[i])
	}
}

func (p *Phases) seconds() map[string]float64 {
	seconds := map[string]float64{}
	for i, t := range p.all() {
		if i < mostPhases || *t > 0 {
			seconds[phaseKeys[i]] = t.Seconds()
		}
	}
	return seconds
}
