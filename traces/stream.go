package traces

import (
	"fmt"
	"io"
	"math"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Stream is a workload that makes requests on demand. It implements sim.Workload, sim.ClosedLoop
// and sim.Sessions. It is not safe for concurrent use.
type Stream struct {
	spec     Spec
	src      source
	sessions *sessions       // src, if it has conversations
	arrivals clock           // nil: the source's own times
	clients  *clients        // arrivals, in a closed loop
	rows     *reader         // src, if it is a file of rows
	overlaps overlaps        // used with the source's own times
	seen     map[string]bool // sessions, used with drawn times
	made     int
	early    bool  // the source or the stages ended before spec.Requests
	content  bool  // the trace describes shared prompts
	left     int   // unused rows of the source, beyond spec.Requests or the stages
	damage   error // error in the unused rows
	err      error

	head    sim.Arrival // read ahead, so that Open reports errors at a file's begin
	hasHead bool
	line    int // line of the row last read
}

// Open returns the workload of a spec. Lengths and times use separate random streams, so equal
// seeds give equal lengths at every rate. If the spec names no tokenizer, the model's counts
// prompts; without either it is Llama2. A file is checked up to its first request; Next returns
// later errors.
func Open(spec Spec, seed uint64, model ...Tokenizer) (*Stream, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	tokenizer, err := spec.tokenizer(model)
	if err != nil {
		return nil, err
	}
	s := &Stream{spec: spec, seen: map[string]bool{}}
	switch spec.Trace {
	case BuiltIn:
		s.src = newMix(spec.datasets(), tokenizer, spec.Output, seed)
	case Synthetic:
		s.src, err = newSynthetic(spec, seed)
	case Sessions:
		var talks *made
		talks, err = newMade(spec, seed)
		s.src = newSessions(talks, spec.OutputScale, spec.ThinkS)
	default:
		if s.src, _, err = openTrace(spec.Trace, newOptions(spec, tokenizer, seed)); err != nil {
			err = fmt.Errorf("workload.trace: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	s.sessions, _ = s.src.(*sessions)
	s.rows, _ = s.src.(*reader)
	if err := s.begin(seed); err != nil {
		s.Close()
		return nil, fmt.Errorf("workload.trace: %w", err)
	}
	if err := s.conflicts(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stream) begin(seed uint64) (err error) {
	switch {
	case s.spec.Arrivals == ArrivalsClosed:
		s.clients = newClients(s.spec, seed)
		s.arrivals = s.clients
	case s.spec.Arrivals != ArrivalsTrace && len(s.spec.Stages) > 0:
		s.arrivals = newStaged(s.spec, seed)
	case s.spec.Arrivals != ArrivalsTrace:
		s.arrivals = newProcess(s.spec, seed)
	case !s.src.timed():
		return fmt.Errorf("%s: has no times of its own; workload.arrivals must be poisson, gamma, "+
			"fixed or closed", s.spec.Trace)
	}
	s.head, err = s.read()
	s.hasHead = err == nil
	return err
}

// read reads a request from the source.
func (s *Stream) read() (a sim.Arrival, err error) {
	a, err = s.src.next()
	if s.rows != nil {
		s.line = s.rows.Line()
	}
	return a, err
}

// conflicts rejects keys that contradict the trace.
func (s *Stream) conflicts() error {
	s.content = s.head.Content != nil
	switch {
	case s.spec.PrefixHit > 0 && s.head.Content != nil:
		return s.spec.sharesItself()
	case s.spec.ThinkS > 0 && s.clients == nil && s.sessions == nil:
		return fmt.Errorf("workload.think_s = %g: %s has no sessions whose turns follow one another; "+
			"leave it out, or use arrivals closed", s.spec.ThinkS, s.spec.Trace)
	}
	return nil
}

// Content reports whether the trace describes shared prompts.
func (s *Stream) Content() bool { return s.content }

// Next returns the next request. After the end or an error it returns the same result again.
func (s *Stream) Next() (a sim.Arrival, ok bool, err error) {
	if s.err != nil || s.early || s.spec.Requests > 0 && s.made == s.spec.Requests {
		return sim.Arrival{}, false, s.err
	}
	a, err = s.build()
	if err == io.EOF {
		if s.hasHead {
			s.left++
		}
		s.early, err = true, s.end()
	}
	if err != nil || s.early {
		s.err = err
		return sim.Arrival{}, false, err
	}
	switch {
	case s.rows == nil:
	case s.arrivals == nil:
		s.overlaps.begin(&a, s.line)
	case s.Concurrency() != 1:
		if s.err = s.further(&a); s.err != nil {
			return sim.Arrival{}, false, s.err
		}
	}
	s.err = s.count()
	return a, true, nil
}

// count counts a request.
func (s *Stream) count() error {
	if s.made++; s.made < s.spec.Requests || s.spec.Requests == 0 {
		return nil
	}
	return s.end()
}

// end counts the remaining rows of the source and closes it.
func (s *Stream) end() error {
	n, err := s.src.rest()
	s.left, s.damage = s.left+n, err
	return s.src.Close()
}

func (s *Stream) build() (a sim.Arrival, err error) {
	var at des.Time
	if s.arrivals != nil {
		if at, err = s.arrivals.next(); err != nil {
			return a, err
		}
	}
	if s.hasHead {
		a, s.hasHead = s.head, false
	} else if a, err = s.read(); err != nil {
		return a, err
	}
	if s.arrivals != nil {
		a.At = at
	} else if a.At, err = replay(a.At, s.spec.Speed); err != nil {
		return a, err
	}
	a.Cached = int(s.spec.PrefixHit * float64(a.Prompt))
	if s.sessions == nil { // sessions include scaled answers in later prompts
		a.Output, err = scaled(a.Output, s.spec.OutputScale)
	}
	return a, err
}

// scaled multiplies an output length; the result is at least one token.
func scaled(output int, scale float64) (int, error) {
	v := math.Round(float64(output) * scale)
	if v > rows.MaxTokens {
		return 0, fmt.Errorf("workload.output_scale = %v: makes %d output tokens %.0f, beyond %d", scale,
			output, v, rows.MaxTokens)
	}
	return max(1, int(v)), nil
}

// Warnings returns the warnings about the requests so far: omissions, an early end of the file,
// estimates. In each warning, the parts that vary between runs follow the colon.
func (s *Stream) Warnings() []warn.Warning {
	w := s.src.warnings()
	if s.overlaps.n > 0 {
		w = append(w, s.overlaps.warning(s.rows.File.Name))
	}
	if s.early && s.spec.Requests > 0 {
		w = append(w, warn.New(warn.TraceEnded, "the trace ended after %d of %d requests: %s", s.made,
			s.spec.Requests, s.spec.Trace))
	}
	if s.damage != nil {
		w = append(w, warn.New(warn.Damaged,
			"the trace is damaged behind the requests that are read: %v", s.damage))
	}
	if s.left > 0 {
		beyond := fmt.Sprintf("workload.requests = %d", s.spec.Requests)
		if s.early {
			beyond = "workload.stages"
		}
		what := "row"
		if s.sessions != nil {
			what = "turn"
		}
		w = append(w, warn.New(warn.RowsLeft, "%s left out beyond %s: %s", rows.Plural(s.left, what),
			beyond, s.spec.Trace))
	}
	return w
}

// Close releases the file of a stream that was not read to its end.
func (s *Stream) Close() error { return s.src.Close() }
