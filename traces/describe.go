package traces

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// A Description summarises a trace file or a workload. Percentiles are as in package quantile.
type Description struct {
	Path     string     `json:"path"`
	Format   string     `json:"format"`
	Requests int        `json:"requests"`
	Seconds  float64    `json:"seconds"` // first to last arrival; 0 without times
	Rate     float64    `json:"rate"`    // requests/s; 0 without times
	Prompt   Quantiles  `json:"prompt_tokens"`
	Output   Quantiles  `json:"output_tokens"`
	Gap      *Quantiles `json:"gap_s,omitempty"` // between arrivals; nil without times
	// coefficient of variation of the gaps: the burstiness of an equivalent gamma process
	GapCV    float64          `json:"gap_cv"`
	Sets     []SetDescription `json:"sets,omitempty"`   // by name; empty if the file has no names
	Prefix   *Reuse           `json:"prefix,omitempty"` // nil if no prompt's content is known
	Warnings []warn.Warning   `json:"warnings"`
}

// A SetDescription summarises one set of a Description.
type SetDescription struct {
	Set      string    `json:"set"`
	Requests int       `json:"requests"`
	Prompt   Quantiles `json:"prompt_tokens"`
	Output   Quantiles `json:"output_tokens"`
}

// Quantiles summarises one quantity.
type Quantiles struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	P1   float64 `json:"p1"`
	P5   float64 `json:"p5"`
	P25  float64 `json:"p25"`
	P50  float64 `json:"p50"`
	P75  float64 `json:"p75"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// mostSets bounds the number of sets that Describe distinguishes, and so its memory. Further sets
// are combined as otherSets.
const (
	mostSets  = 50
	otherSets = "(others)"
)

// Describe reads a trace to its end and summarises it in constant memory. An empty format is
// detected. Every line is checked, including the order of times. It stops when ctx ends. With a
// zero KV it omits prefix reuse.
func Describe(ctx context.Context, path, format string, kv KV) (Description, error) {
	tokenizer := cmp.Or(kv.Tokenizer, Llama2)
	src, format, err := openOnce(path, format, tokenizer)
	if err != nil {
		return Description{}, err
	}
	defer src.Close()
	c := newCensus(kv)
	all, timed := each(src)
	for a, err := range all {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return Description{}, err
		}
		c.add(a)
	}
	return c.describe(files.Label(path), format, timed, src.texts(), src.warnings()), nil
}

// DescribeWorkload draws a workload's requests and summarises them as they are served, without the
// model's maximum length. In a closed loop the server determines the times. Turns of sessions
// arrive as from a server with zero latency.
func DescribeWorkload(ctx context.Context, name string, spec Spec, seed uint64,
	kv KV) (Description, error) {
	s, err := Open(spec, seed, kv.Tokenizer)
	if err != nil {
		return Description{}, err
	}
	defer s.Close()
	c := newCensus(kv)
	for a, err := range s.All() {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return Description{}, err
		}
		if s.clients != nil {
			a.At = 0
		}
		c.add(a)
	}
	return c.describe(name, "workload", s.clients == nil, s.Counts(), s.Warnings()), nil
}

// census accumulates a Description request by request.
type census struct {
	prompt, output, gap *tally
	sets                map[string]*lengths
	first, last         des.Time
	reused              reused
}

type lengths struct{ prompt, output *tally }

func newCensus(kv KV) *census {
	return &census{prompt: newTally(), output: newTally(), gap: newTally(),
		sets: map[string]*lengths{}, reused: reused{kv: kv}}
}

func (c *census) add(a sim.Arrival) {
	if c.prompt.n > 0 {
		c.gap.add(int64(a.At - c.last))
	} else {
		c.first = a.At
	}
	c.last = a.At
	c.reused.add(&a)
	c.prompt.add(int64(a.Prompt))
	c.output.add(int64(a.Output))
	s := c.sets[a.Set]
	if s == nil {
		name := a.Set
		if len(c.sets) >= mostSets {
			name = otherSets
		}
		if s = c.sets[name]; s == nil {
			s = &lengths{newTally(), newTally()}
			c.sets[name] = s
		}
	}
	s.prompt.add(int64(a.Prompt))
	s.output.add(int64(a.Output))
}

// describe returns the summary so far. texts is true if a tokenizer has counted prompts.
func (c *census) describe(path, format string, timed, texts bool,
	warnings []warn.Warning) Description {
	d := Description{Path: path, Format: format, Requests: c.prompt.n, Prompt: c.prompt.quantiles(1),
		Output: c.output.quantiles(1), Prefix: c.reused.describe(),
		Warnings: append(append([]warn.Warning{}, warnings...), c.reused.warnings()...)}
	if kv := c.reused.kv; kv.Guess && texts {
		d.Warnings = append(d.Warnings, GuessedTokenizer(kv.Model, string(cmp.Or(kv.Tokenizer, Llama2))))
	}
	if timed && c.gap.n > 0 {
		gap := c.gap.quantiles(float64(des.Second))
		d.Gap, d.Seconds = &gap, (c.last - c.first).Seconds()
		if d.Seconds > 0 {
			d.Rate, d.GapCV = float64(c.gap.n)/d.Seconds, c.gap.cv()
		}
	}
	if len(c.sets) == 1 && c.sets[""] != nil {
		return d
	}
	for _, name := range slices.Sorted(maps.Keys(c.sets)) {
		s := c.sets[name]
		d.Sets = append(d.Sets, SetDescription{name, s.prompt.n, s.prompt.quantiles(1),
			s.output.quantiles(1)})
	}
	return d
}

// tally accumulates the statistics of one quantity.
type tally struct {
	samples  stats.Counts
	n        int
	mean, m2 float64 // Welford's running mean and sum of squared deviations
	min, max int64
}

func newTally() *tally { return &tally{min: math.MaxInt64} }

func (t *tally) add(v int64) {
	t.samples.Add(v, 1)
	t.n++
	delta := float64(v) - t.mean
	t.mean += delta / float64(t.n)
	t.m2 += delta * (float64(v) - t.mean)
	t.min, t.max = min(t.min, v), max(t.max, v)
}

// cv returns the coefficient of variation.
func (t *tally) cv() float64 { return math.Sqrt(t.m2/float64(t.n)) / t.mean }

// quantiles returns the summary in the given unit.
func (t *tally) quantiles(unit float64) Quantiles {
	p := t.samples.Percentiles(1, 5, 25, 50, 75, 95, 99)
	for i := range p {
		p[i] /= unit
	}
	return Quantiles{
		Mean: t.mean / unit, Min: float64(t.min) / unit, Max: float64(t.max) / unit,
		P1: p[0], P5: p[1], P25: p[2], P50: p[3], P75: p[4], P95: p[5], P99: p[6],
	}
}
