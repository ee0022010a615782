package traces

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// grouped are the sessions of a file whose rows name them, in order of their first rows' times. A
// row follows the row of its session before after its pause, or else after the time between that
// row's end and its own recorded time. A row without a session is one of its own. The whole file is
// kept, unless each record is a session without a time.
type grouped struct {
	*reader
	seed  uint64
	talks []*talk
	read  bool
}

// streams reports whether each record is a session without a time.
func (g *grouped) streams() bool { return g.session == "" && !g.hasTime }

func (g *grouped) talk() (*talk, error) {
	if g.streams() {
		r, err := g.row()
		if err != nil {
			return nil, err
		}
		all := []row{r}
		for len(g.ready) > 0 {
			r, _ = g.row()
			all = append(all, r)
		}
		return given(all, thinkRand(g.seed, g.records)), nil
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
		r, err := g.row()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if r.Session == "" {
			r.Session = fmt.Sprintf("r%d", g.n)
		}
		before := sessions[r.Session]
		if before == nil {
			order = append(order, r.Session)
			if r.later && g.timed() {
				return g.Fault(rows.Wrong(g.timeKey(), "", "missing in the first row of session "+r.Session))
			}
		} else if !r.later {
			last := before[len(before)-1]
			if r.pause = -1; g.timed() {
				r.pause = max(0, r.At-last.At-last.took)
			}
		}
		if r.answer == 0 {
			r.answer = textID(model, fmt.Sprint(r.Session, " ", len(before)))
		}
		sessions[r.Session] = append(before, r)
	}
	for n, name := range order {
		g.talks = append(g.talks, given(sessions[name], thinkRand(g.seed, n)))
	}
	slices.SortStableFunc(g.talks, func(a, b *talk) int { return cmp.Compare(a.at, b.at) })
	for first, i := g.talks[0].at, 0; i < len(g.talks); i++ {
		g.talks[i].at -= first
	}
	return nil
}

// rest returns the turns that have not begun.
func (g *grouped) rest() (n int, err error) {
	if g.streams() {
		return g.reader.rest()
	}
	for _, t := range g.talks {
		for t.turns() != nil {
			n++
		}
	}
	return n, nil
}
