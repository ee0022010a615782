package traces

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A source yields lengths, with times if it is timed, until io.EOF.
type source interface {
	next() (sim.Arrival, error)
	origin
}

// origin is what the requests of a source come from.
type origin interface {
	timed() bool              // times are valid, count from the first request, never decrease
	texts() bool              // a tokenizer determines prompt lengths
	warnings() []warn.Warning // so far
	// rest skips the remaining rows or turns and returns their number, up to the first unreadable.
	rest() (int, error)
	Close() error
}

// A row is one request as recorded.
type row struct {
	at     des.Time // on the file's own clock
	stamp  string   // at as written
	prompt int      // tokens, at least 1
	output int      // tokens, at least 1
	set    string
	// session is the conversation's name, if the file has one
	session string
	took    des.Time        // from at to the end of its answer, if the file has it
	later   bool            // follows the session's row before: it has a pause instead of a time
	pause   des.Time        // of a later row, from the end of the row before; below 0: a think time
	asked   []prefix.Piece  // added to the session since the last answer; nil: prompt is the whole
	answer  uint64          // id of the answer's text, of a row with asked
	content *prefix.Content // nil if the row has none
	image   bool            // has an image, which is not served
	skip    skip
}

// skip is the reason to skip a row.
type skip int

const (
	keep     skip = iota
	failed        // 0 tokens of prompt or output: never served
	excluded      // a set that is not selected
	part          // the beginning of the next row
)

// reader turns rows into requests.
type reader struct {
	*lines

	member  bool // one of several files: it may have no selected request
	ordered bool // reject decreasing times
	started bool
	first   des.Time
	last    row // the previous request

	excluded int
	other    string // an excluded set, for the message
}

func (r *reader) next() (sim.Arrival, error) {
	for {
		row, err := r.lines.next()
		if err == io.EOF {
			return sim.Arrival{}, r.end()
		} else if err != nil {
			return sim.Arrival{}, err
		} else if row.skip == excluded {
			r.excluded++
			r.other = row.set
			continue
		}
		a := sim.Arrival{Prompt: row.prompt, Output: row.output, Set: row.set, Session: row.session,
			Content: row.content}
		if r.timed() && r.ordered {
			if a.At, err = r.place(row); err != nil {
				return sim.Arrival{}, err
			}
		}
		return a, nil
	}
}

// place returns the time of a row since the first row.
func (r *reader) place(row row) (des.Time, error) {
	if !r.started {
		r.started, r.first, r.last = true, row.at, row
	}
	if row.at < r.last.at {
		return 0, r.Fault(rows.Wrong(r.timeKey(), row.stamp, fmt.Sprintf("before the request "+
			"above it (%s); sort the file by %s, or use arrivals that make their own times",
			rows.Short(r.last.stamp), r.timeKey())))
	}
	row.stamp = strings.Clone(row.stamp) // do not retain the whole record
	r.last = row
	return row.at - r.first, nil
}

// end returns io.EOF, or an error if the file had no request.
func (r *reader) end() error {
	e := &rows.Error{File: r.File.Name, Problem: "no requests in it"}
	switch {
	case r.n > r.failed+r.excluded, r.member && r.excluded > 0:
		return io.EOF
	case r.excluded > 0:
		e.Problem = fmt.Sprintf("no requests of longbench.datasets in it, but %d of others such as %q",
			r.excluded, r.other)
	case r.failed > 0:
		e.Problem += " but " + rows.Plural(r.failed, "row") + " of 0 tokens, never served"
	}
	return e
}

func (r *reader) warnings() (w []warn.Warning) {
	if r.excluded > 0 && !r.member {
		w = append(w, unnamed(r.excluded, r.File.Name))
	}
	return append(w, r.lines.warnings()...)
}

// unread warns of fields of a file that are not known: columns, or keys of the first record. Known
// names may go on behind a dot, and are separated by other characters than letters and spaces.
func unread(from *rows.Reader, known string) []warn.Warning {
	var names, said []string
	for name := range strings.FieldsFuncSeq(known, func(r rune) bool {
		return strings.ContainsRune(",|+=", r)
	}) {
		name, _, _ = strings.Cut(name, ".")
		names = append(names, strings.ToLower(name))
	}
	for _, name := range from.Names {
		if name != "" && !slices.Contains(names, strings.ToLower(name)) {
			said = append(said, strconv.Quote(rows.Short(name)))
		}
	}
	if len(said) == 0 {
		return nil
	}
	what, n := "column", len(said)
	if from.JSON() {
		what = "key"
	}
	if most := 8; n > most {
		said = append(said[:most], fmt.Sprintf("%d more", n-most))
	}
	return []warn.Warning{warn.New(warn.TraceContent, "%s not read: %s: %s", rows.Plural(n, what),
		strings.Join(said, ", "), from.File.Name).About("not read")}
}

// estimated warns that a file has no token counts.
func estimated(file string, t Tokenizer) warn.Warning {
	return warn.New(warn.Tokenizer,
		"%s prompt tokens are estimated from words or characters, good to 5 %%: %s",
		t, file).About("estimated")
}

// unnamed warns of the requests in sets that are not selected.
func unnamed(n int, file string) warn.Warning {
	return warn.New(warn.RowsLeft, "%s left out of sets that longbench.datasets does not name: %s",
		rows.Plural(n, "row"), file).About("sets")
}
