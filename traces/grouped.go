package traces

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// grouped are the sessions of a file whose rows name them, in order of their first rows' times. A
// row follows the row of its session before after its pause, or else after the time between that
// row's end and its own recorded time. A row without a session is one of its own. The whole file is
// kept, unless each record is a session without a time.
type grouped struct {
	*lines
	seed  uint64
	talks []*talk
	read  bool
}

// streams reports whether each record is a session without a time.
func (g *grouped) streams() bool { return g.session == "" && !g.hasTime }

func (g *grouped) talk() (*talk, error) {
	if g.streams() {
		r, err := g.lines.next()
		if err == io.EOF && g.n == 0 {
			err = g.none()
		}
		if err != nil {
			return nil, err
		}
		all := append([]row{r}, g.ready...)
		g.ready = nil
		return given(r.session, turnsOf(all), thinkRand(g.seed, g.records)), nil
	}
	if !g.read {
		g.read = true
		if err := g.load(); err != nil {
			return nil, err
		}
	}
	if len(g.talks) == 0 {
		return nil, io.EOF
	}
	t := g.talks[0]
	g.talks = g.talks[1:]
	return t, nil
}

// load reads all rows.
func (g *grouped) load() error {
	sessions, order := map[string][]row{}, []string{}
	for {
		r, err := g.lines.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if r.session == "" {
			r.session = fmt.Sprintf("r%d", g.n)
		}
		before := sessions[r.session]
		if before == nil {
			order = append(order, r.session)
			if r.later && g.timed() {
				return g.Fault(rows.Wrong(g.timeKey(), "", "missing in the first row of session "+r.session))
			}
		} else if !r.later {
			last := before[len(before)-1]
			if r.pause = -1; g.timed() {
				r.pause = max(0, r.at-last.at-last.took)
			}
		}
		sessions[r.session] = append(before, r)
	}
	if len(order) == 0 {
		return g.none()
	}
	for n, name := range order {
		t := given(name, turnsOf(sessions[name]), thinkRand(g.seed, n))
		t.at = sessions[name][0].at
		g.talks = append(g.talks, t)
	}
	slices.SortStableFunc(g.talks, func(a, b *talk) int { return cmp.Compare(a.at, b.at) })
	for first, i := g.talks[0].at, 0; i < len(g.talks); i++ {
		g.talks[i].at -= first
	}
	return nil
}

// none is the error of a file without requests.
func (g *grouped) none() error {
	e := &rows.Error{File: g.File.Name, Problem: "no requests in it"}
	if g.others > 0 {
		e.Key, _, _ = strings.Cut(g.list, "|")
		e.Line, e.Problem = g.firstOther, "no request in it, nor in any other, but "+g.without
	}
	return e
}

// turnsOf makes turns of the rows of a session.
func turnsOf(all []row) (turns []turn) {
	for i := range all {
		r := &all[i]
		t := turn{asked: r.asked, output: r.output, whole: r, pause: r.pause,
			answer: r.answer}
		if r.asked != nil {
			t.whole = nil
		}
		if t.answer == 0 {
			t.answer = textID(model, fmt.Sprint(r.session, " ", i))
		}
		turns = append(turns, t)
	}
	return turns
}

// rest returns the turns that have not begun.
func (g *grouped) rest() (n int, err error) {
	if g.streams() {
		return g.lines.rest()
	}
	for _, t := range g.talks {
		for t.next, t.more = t.turns(); t.more; t.next, t.more = t.turns() {
			n++
		}
	}
	return n, nil
}
