package traces

import (
	"fmt"
	"io"
	"iter"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A talk is a session whose turns are made one by one. A turn is a row: one question of the session
// with its answer.
type talk struct {
	name   string
	turns  func() *row // nil after the last
	think  *rand.Rand
	next   *row
	before []prefix.Piece // all turns so far; elements are never changed
	tokens int
	at     des.Time // of the first turn, if the talker is timed
}

// talker yields talks until io.EOF.
type talker interface {
	talk() (*talk, error)
	origin
}

// sessions is the source of the first turns of talks; follow returns the later turns.
type sessions struct {
	talker
	scale float64 // multiplier of outputs
	think float64 // mean, seconds
	begun map[string]*talk
	ended int // early: a turn was rejected
	left  int // a turn was beyond workload.requests
}

func newSessions(t talker, scale, think float64) *sessions {
	return &sessions{talker: t, scale: scale, think: think, begun: map[string]*talk{}}
}

// next starts a talk.
func (s *sessions) next() (sim.Arrival, error) {
	t, err := s.talk()
	if err != nil {
		return sim.Arrival{}, err
	}
	t.next = t.turns()
	a, err := s.turn(t)
	a.At = t.at
	if t.next != nil && err == nil {
		s.begun[t.name] = t
	}
	return a, err
}

// turn makes the request of a talk's next turn: the context so far and the new question.
func (s *sessions) turn(t *talk) (a sim.Arrival, err error) {
	now := t.next
	t.next = t.turns()
	if now.asked == nil {
		a = sim.Arrival{Prompt: now.Prompt, Session: t.name, Content: now.Content}
		a.Output, err = scaled(now.Output, s.scale)
		return a, err
	}
	for _, p := range now.asked {
		t.before, t.tokens = append(t.before, p), t.tokens+p.Tokens
	}
	if t.tokens > rows.MaxTokens {
		return a, fmt.Errorf("session %s: a prompt of %d tokens, more than %d", t.name, t.tokens,
			rows.MaxTokens)
	}
	a = sim.Arrival{Prompt: t.tokens, Session: t.name,
		Content: &prefix.Content{Prompt: t.before[:len(t.before):len(t.before)], Answer: now.answer}}
	a.Output, err = scaled(now.Output, s.scale)
	t.before = append(t.before, prefix.Piece{ID: now.answer, Tokens: a.Output})
	t.tokens += a.Output
	return a, err
}

// follow returns the turn after one that ended. last means that no further request may come.
func (s *sessions) follow(ended sim.Arrival, at des.Time, rejected, last bool) (
	a sim.Arrival, ok bool, err error) {
	t := s.begun[ended.Session]
	if t == nil {
		return a, false, nil
	}
	switch {
	case rejected:
		s.ended++
	case last:
		s.left++
	default:
		pause := t.next.pause.Seconds()
		if pause < 0 {
			pause = s.think * t.think.ExpFloat64()
		}
		if a, err = s.turn(t); err != nil {
			return a, false, err
		}
		if t.next == nil {
			delete(s.begun, t.name)
		}
		a.At, err = after(at, pause, s.think)
		return a, err == nil, err
	}
	delete(s.begun, t.name)
	return a, false, nil
}

func (s *sessions) warnings() []warn.Warning {
	w := s.talker.warnings()
	if s.ended > 0 {
		w = append(w, warn.New(warn.TraceEnded, "%s ended early: a turn was rejected",
			rows.Plural(s.ended, "session")).About("sessions"))
	}
	if s.left > 0 {
		w = append(w, warn.New(warn.RowsLeft, "%s had turns left beyond workload.requests",
			rows.Plural(s.left, "session")).About("sessions"))
	}
	return w
}

// each yields all requests of a source, with every turn of a session after the one before. An error
// is the last element. Turns have no times.
func each(src source) (all iter.Seq2[sim.Arrival, error], timed bool) {
	s, turns := src.(*sessions)
	return func(yield func(sim.Arrival, error) bool) {
		for a, err := src.next(); err != io.EOF; a, err = src.next() {
			if !yield(a, err) || err != nil {
				return
			}
			for turns && s.begun[a.Session] != nil {
				t := s.begun[a.Session]
				if a, err = s.turn(t); !yield(a, err) || err != nil {
					return
				}
				if t.next == nil {
					delete(s.begun, t.name)
				}
			}
		}
	}, src.timed() && !turns
}

// given returns a talk with given turns.
func given(turns []row, think *rand.Rand) *talk {
	return &talk{name: turns[0].Session, at: turns[0].At, think: think, turns: func() *row {
		if len(turns) == 0 {
			return nil
		}
		first := &turns[0]
		turns = turns[1:]
		return first
	}}
}

// thinkRand returns the random stream of the n-th session's think times.
func thinkRand(seed uint64, n int) *rand.Rand {
	return des.Rand(des.Hash(seed, uint64(n)), "traces.think")
}

// made generates talks. Each talk has its own random stream, so it does not depend on when it
// starts.
type made struct {
	generated
	seed                uint64
	n, most             int     // talks so far, and their limit if not 0
	asked, answer, long Lengths // lengths of questions and answers, turns per talk
	system              []prefix.Piece
	popular             Lengths // index into system, from 1
}

// newMade returns the talks of a validated spec.
func newMade(s Spec, seed uint64) (*made, error) {
	lengths, err := s.distributions()
	if err != nil {
		return nil, err
	}
	m := &made{seed: seed, most: s.Sessions, asked: lengths[promptsKey], answer: lengths[outputsKey],
		long: lengths[turnsKey]}
	if s.SystemPrompts == 0 {
		return m, nil
	}
	rng := des.Rand(seed, "traces.system")
	for k := range s.SystemPrompts {
		m.system = append(m.system, prefix.Piece{ID: des.Hash(seed, uint64(k), 0x5e5),
			Tokens: lengths[systemKey].Quantile(rng.Float64())})
	}
	quantile, problem := zipfLengths([]float64{s.SystemZipf, float64(s.SystemPrompts)})
	if problem != "" {
		return nil, fmt.Errorf("sessions.system_zipf = %v: %s", s.SystemZipf, problem)
	}
	m.popular = Lengths{quantile: quantile}
	return m, nil
}

func (m *made) talk() (*talk, error) {
	if m.most > 0 && m.n == m.most {
		return nil, io.EOF
	}
	m.n++
	session, rng := m.n, des.Rand(des.Hash(m.seed, uint64(m.n)), "traces.session")
	var first []prefix.Piece
	if len(m.system) > 0 {
		first = append(first, m.system[m.popular.Quantile(rng.Float64())-1])
	}
	turns, n := m.long.Quantile(rng.Float64()), 0
	name := func(what uint64) uint64 { return des.Hash(m.seed, uint64(session), uint64(n), what) }
	return &talk{name: fmt.Sprintf("s%d", session), think: thinkRand(m.seed, session),
		turns: func() *row {
			if n++; n > turns {
				return nil
			}
			asked := append(first, prefix.Piece{ID: name(0xa5c), Tokens: m.asked.Quantile(rng.Float64())})
			first = nil
			return &row{asked: asked, answer: name(0xa25), pause: -1,
				Arrival: sim.Arrival{Output: m.answer.Quantile(rng.Float64())}}
		}}, nil
}

// HasTurns reports whether the end of a request triggers further arrivals: turns of conversations.
func (s *Stream) HasTurns() bool { return s.sessions != nil }

// Whole yields the sessions to the end of each, without times; a request without a session is one
// of its own. An error is the last element.
func (s *Stream) Whole() iter.Seq2[[]sim.Arrival, error] {
	return func(yield func([]sim.Arrival, error) bool) {
		for {
			a, ok, err := s.Next()
			if !ok && err == nil {
				return
			}
			var turns []sim.Arrival
			for ok && err == nil {
				turns = append(turns, a)
				a, ok, err = s.Follow(a, 0, false)
			}
			if !yield(turns, err) || err != nil {
				return
			}
		}
	}
}

// Follow implements sim.Sessions.
func (s *Stream) Follow(ended sim.Arrival, at des.Time, rejected bool) (
	a sim.Arrival, ok bool, err error) {
	s.overlaps.end(&ended, at)
	if s.sessions == nil || s.err != nil {
		return a, false, s.err
	}
	last := s.spec.Requests > 0 && s.made == s.spec.Requests
	a, ok, s.err = s.sessions.follow(ended, at, rejected, last)
	if ok {
		s.err = s.count()
	}
	return a, ok && s.err == nil, s.err
}
